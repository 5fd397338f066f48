"""What the theorems assume, and where the documentation says so.

    python3 check.py            nothing is admitted, and the theorems assume Coq's axioms alone (after `make compile`)
    python3 check.py --tables   the tables and the pages of docs/proofs name the right files and lines
    python3 check.py --write    write them

It needs Python 3.11 and nothing else; the tables need no Coq.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "proofs"
FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Abort|Declare|bypass_check"
    r"|(Guard|Positivity|Universe) Checking)\b"
)
SENTENCE = re.compile(
    r"(?:^|(?<=\.\s))\s*(Section|Module|End|Hypothes[ie]s|Variables?|Context)\b\s*(\w*)", re.MULTILINE
)
STATED = re.compile(r"^(?:Theorem|Corollary|Lemma|Proposition|Fact|Remark|Example) (\w+)", re.MULTILINE)
# The real numbers of Coq's library, and classical logic, which Coquelicot uses.
REALS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
# Coq's machine integers and floating-point numbers and what they compute, which the tactic `interval` uses.
MACHINE = re.compile(r"^(PrimInt63|Uint63|PrimFloat|FloatAxioms)\.")
MARK = re.compile(r"\n\*\*(?:Checked by Coq|Not checked by Coq)\.\*\* [^\n]*\n")


def sources() -> list[Path]:
    """All files, claims last."""
    return [*sorted(HERE.glob("*.v")), *sorted((HERE / "claims").glob("*.v"))]


def without_comments(text: str) -> str:
    """The text without (* comments *), which may be nested; lines are kept."""
    out, depth, place = [], 0, 0
    for token in re.finditer(r"\(\*|\*\)|\n", text):
        if depth == 0:
            out.append(text[place : token.start()])
        depth += {"(*": 1, "*)": -1, "\n": 0}[token.group()]
        if token.group() == "\n":
            out.append("\n")
        place = token.end()
    return "".join([*out, text[place:]])


def not_admitted(path: Path, text: str) -> list[str]:
    """What is assumed in a file itself: an axiom, an admitted proof, or a hypothesis outside of a section."""
    plain, found, open_blocks = without_comments(text), [], []

    def place(match: re.Match[str]) -> str:
        return f"{path.name}:{plain.count(chr(10), 0, match.start(1)) + 1}"

    found += [f"{place(match)}: {match.group()}" for match in FORBIDDEN.finditer(plain)]
    for match in SENTENCE.finditer(plain):
        word, name = match.group(1), match.group(2)
        if word in ("Section", "Module"):
            open_blocks.append(word)
        elif word == "End" and open_blocks:
            open_blocks.pop()
        elif word != "End" and "Section" not in open_blocks:
            found.append(f"{place(match)}: {word} {name} outside of a section")
    return found


def theorems(path: Path) -> list[str]:
    """The names of what a file states, with their modules."""
    found, module = [], ""
    for line in without_comments(path.read_text(encoding="utf-8")).splitlines():
        if opened := re.match(r"Module (\w+)\.", line):
            module = f"{opened.group(1)}."
        elif module and line.startswith(f"End {module}"):
            module = ""
        elif stated := STATED.match(line):
            found.append(module + stated.group(1))
    return found


def assumptions(paths: list[Path]) -> set[str]:
    """The axioms that the theorems of these compiled files rest on, as Coq tells them."""
    lines = []
    for path in paths:
        library = "Dpassay." + ".".join(path.relative_to(HERE).with_suffix("").parts)
        lines.append(f"Require {library}.")
        lines += [f"Definition t{len(lines)}_{i} := @{library}.{name}." for i, name in enumerate(theorems(path))]
    names = [line.split()[1] for line in lines if line.startswith("Definition")]
    lines += [f"Definition all := ({', '.join(names)}).", "Print Assumptions all."]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "assumptions.v"
        file.write_text("\n".join(lines))
        command = ["coqc", "-w", "none", "-Q", str(HERE), "Dpassay", str(file)]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(said.stderr)
    return set(re.findall(r"^([\w.]+)(?= *(?::|$))", said.stdout, re.MULTILINE)) - {"Axioms", "Closed"}


def check_assumptions() -> int:
    """Print what is assumed, and return 1 if it is too much."""
    admitted = [line for path in sources() for line in not_admitted(path, path.read_text(encoding="utf-8"))]
    for line in admitted:
        print(line)
    own = [path for path in sources() if path.parent == HERE]
    kinds = {"theorems": own, "claims": [path for path in sources() if path.parent != HERE]}
    wrong = bool(admitted)
    with ThreadPoolExecutor() as pool:  # each waits for Coq
        all_found = dict(zip(kinds, pool.map(assumptions, kinds.values()), strict=True))
    for kind, paths in kinds.items():
        number = sum(len(theorems(path)) for path in paths)
        found = all_found[kind]
        machine = {name for name in found if MACHINE.match(name)}
        others = found - REALS - machine
        print(f"{kind}: {number} statements in {len(paths)} files; axioms: {', '.join(sorted(found - machine))}")
        if machine:
            print(f"  and {len(machine)} about Coq's own integers and floating-point numbers")
        if others or (machine and kind == "theorems"):
            print(f"  not allowed: {', '.join(sorted(others or machine))}")
            wrong = True
    return int(wrong)


# ── Tables and pages ────────────────────────────────────────────────────────────────────────────


def link(name: str, folder: str = "") -> str:
    """A link to where a theorem is stated: Laplace.laplace_interval becomes [`laplace_interval`](Laplace.v#L86)."""
    file, theorem = name.split(".")
    for number, line in enumerate((HERE / f"{file}.v").read_text(encoding="utf-8").splitlines(), 1):
        if re.match(rf"(Theorem|Corollary|Lemma) {theorem}\b", line):
            return f"[`{theorem}`]({folder}{file}.v#L{number})"
    raise SystemExit(f"pages.toml names {name}, which proofs/{file}.v does not state")


def marked(page: str, entry: dict[str, object] | None) -> str:
    """The paragraph that a page has about Coq."""
    if entry is None:
        return "\n**Not checked by Coq.** This page is proved on paper only.\n"
    names = [link(name, "../../proofs/") for name in entry["theorems"]]  # type: ignore[attr-defined]
    rest = f" Proved on paper only: {entry['paper']}." if entry["paper"] else ""
    return f"\n**Checked by Coq.** {', '.join(names)}.{rest}\n"


def with_mark(text: str, mark: str) -> str:
    """A page with its paragraph about Coq, before the place where it is used or at the end."""
    text = MARK.sub("", text)
    for place in ("\n**Where it is used.**", "\n**Numbers to check.**", "\n**Source.**"):
        if place in text:
            before, after = text.split(place, 1)
            return f"{before}{mark}{place}{after}"
    return text.rstrip("\n") + "\n" + mark


def certified(pages: list[str]) -> set[str]:
    """The theorems that certificates name: the independent verifier checks them again, and tests have oracles."""
    verifier = HERE.parent / "src" / "dpassay" / "evidence" / "verifier"
    files = ("noises/known_noises", "premises", "sampling/steps")
    code = "\n".join((verifier / f"{name}.py").read_text(encoding="utf-8") for name in files)
    return {page for page in pages if f'"{page}"' in code}


def trust_table(pages: dict[str, dict[str, object]]) -> str:
    """Who has checked what a verdict rests on."""
    rows: dict[tuple[str, str], list[str]] = {}
    named = sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "README")
    again = certified(named)
    for page in named:
        coq = "no" if page not in pages else "in part" if pages[page]["paper"] else "yes"
        rows.setdefault((coq, "yes" if page in again else "no"), []).append(page)
    claims = sum(theorem.endswith(".verdict") for path in sources() for theorem in theorems(path))
    lines = ["| pages of docs/proofs | Coq | verifier, oracles and mutants | on paper |", "|---|---|---|---|"]
    for coq, verified in sorted(rows, key=lambda row: (["yes", "in part", "no"].index(row[0]), row[1] == "no")):
        links = ", ".join(f"[{page}](docs/proofs/{page}.md)" for page in rows[coq, verified])
        lines.append(f"| {links} | {coq} | {verified} | {'all of it' if coq == 'no' else 'yes'} |")
    lines += [
        "",
        f"{claims} verdicts on published claims are stated in [proofs/claims](proofs/claims) with their own "
        "numbers, and Coq checks each as a whole.",
    ]
    return "\n".join(lines)


def statements_table() -> str:
    """Each file with its main theorems."""
    lines = ["| file | what it is about | main theorems |", "|---|---|---|"]
    for path in sources():
        if path.parent != HERE or path.stem in ("Prelude", "Certificate"):
            continue
        text = path.read_text(encoding="utf-8")
        title = re.match(r"\(\*\* \* ([^\n]*)", text)
        main = re.search(r"Main theorems?:(.*?)\*\)", text, re.DOTALL)
        found = [name for name in re.findall(r"\[(\w+)\]", main.group(1) if main else "") if name in theorems(path)]
        named = ", ".join(link(f"{path.stem}.{name}") for name in found)
        lines.append(f"| [{path.name}]({path.name}) | {title.group(1) if title else ''} | {named} |")
    return "\n".join(lines)


def between(text: str, name: str, table: str) -> str:
    """A file with a table between its two marks."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = text.split(start)
    return before + start + table + "\n" + end + rest.split(end)[1]


def documents() -> dict[Path, str]:
    """Every file that names theorems or lines, as it should be."""
    pages = tomllib.loads((HERE / "pages.toml").read_text(encoding="utf-8"))
    wanted = {}
    for path in sorted(DOCS.glob("*.md")):
        if path.stem != "README":
            wanted[path] = with_mark(path.read_text(encoding="utf-8"), marked(path.stem, pages.get(path.stem)))
    readme, own = HERE.parent / "README.md", HERE / "README.md"
    wanted[readme] = between(readme.read_text(encoding="utf-8"), "table of trust", trust_table(pages))
    wanted[own] = between(own.read_text(encoding="utf-8"), "statements", statements_table())
    return wanted


def main() -> int:
    """What was asked for."""
    if sys.argv[1:] not in ([], ["--tables"], ["--write"]):
        print(__doc__)
        return 2
    if not sys.argv[1:]:
        return check_assumptions()
    stale = {path: text for path, text in documents().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if sys.argv[1:] == ["--write"]:
            path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(HERE.parent)} {'written' if sys.argv[1:] == ['--write'] else 'is not up to date'}")
    return int(bool(stale) and sys.argv[1:] == ["--tables"])


if __name__ == "__main__":
    sys.exit(main())
