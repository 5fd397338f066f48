"""Results for other tools: SARIF, JUnit, annotations, and the rules they refer to."""
