"""Commands about code: audits, traces, scans, packages, audits of training."""
