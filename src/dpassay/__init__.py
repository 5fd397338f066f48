"""Is that ε real? Exact, re-checkable verdicts on differential-privacy claims."""
