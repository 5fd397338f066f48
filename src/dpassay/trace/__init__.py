"""What a run of real code drew, at which line, what it was added to, and the loss that this gives."""

from dpassay.trace.findings import Finding
from dpassay.trace.trace import TraceResult, trace

__all__ = ["Finding", "TraceResult", "trace"]
