"""What the GitHub Action runs: judge the claims of a folder, and tell GitHub the outcome.

The inputs come in the environment, so that nothing in them is read by a shell. The summary of the job gets a table, its
outputs the counts and files; annotations go to the log. It ends with the exit code of dpassay.
"""

import json
import os
import subprocess
import sys

CLAIMS = os.environ.get("DPASSAY_CLAIMS") or "claims"
SARIF = os.environ.get("DPASSAY_SARIF") or "dpassay.sarif"
JUNIT = os.environ.get("DPASSAY_JUNIT") or "dpassay.xml"
DECIDE = os.environ.get("DPASSAY_REQUIRE_DECISION", "").lower() == "true"
MARKS = {"proven": "✓ proven", "refuted": "✗ refuted", "open": "? open"}


def main() -> int:
    """Run dpassay once, and write what GitHub shows."""
    command = [sys.executable, "-m", "dpassay", "gallery", f"--from={CLAIMS}", "--json", "--annotations"]
    command += [f"--sarif={SARIF}", f"--junit={JUNIT}", *(["--require-decision"] if DECIDE else [])]
    # Annotations and errors go to the log as they come.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    verdicts = json.loads(done.stdout) if done.stdout.strip() else []
    words = [verdict["verdict"] for verdict in verdicts]
    counts = {word: str(words.count(word)) for word in MARKS}
    append("GITHUB_STEP_SUMMARY", summary(verdicts, done.returncode))
    written = {"sarif": SARIF, "junit": JUNIT, **counts, "exit-code": str(done.returncode)}
    append("GITHUB_OUTPUT", "".join(f"{name}={one_line(value)}\n" for name, value in written.items()))
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return done.returncode


def summary(verdicts: list[dict], code: int) -> str:
    """A Markdown table, a row per claim."""
    if not verdicts:
        return f"### Privacy claims\n\nNo claim of `{CLAIMS}` was judged (exit code {code}); the log says why.\n"
    rows = ["| claim | verdict | why |", "|---|---|---|"]
    for verdict in verdicts:
        rows.append(f"| {cell(verdict['claim']['name'])} | {MARKS[verdict['verdict']]} | {cell(verdict['reason'])} |")
    return "\n".join(["### Privacy claims", "", *rows, ""])


def cell(text: str) -> str:
    """Text in a table: none of it is markup."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\")
    return "".join(f"\\{c}" if c in "|`*_[]" else c for c in one_line(escaped))


def one_line(text: str) -> str:
    """Text without line ends, which would begin another output or row."""
    return " ".join(text.split())


def append(variable: str, text: str) -> None:
    """Add to the file that GitHub names in a variable; nothing where it does not."""
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
