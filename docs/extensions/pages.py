"""Pages that are made when the site is built, so that they cannot go stale.

- The page of the command line is written from the commands themselves.
- A notebook becomes a page. With `DPASSAY_RUN_NOTEBOOKS=1` it is run first, and the page shows what it gives.
- The README of a folder lists the other pages of the folder in the sidebar.
- Each file that Coq checks is a page with a place for every line, to which the pages of proofs link.
"""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

MARKER = "% the commands are inserted here"
COQ = Path(__file__).parents[2] / "proofs"
STATED = re.compile(r"\[(`\w+`)\]\(\.\./\.\./proofs/(\w+)\.v#(L\d+)\)")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def command_line() -> str:
    """All commands with their options and examples, as Markdown."""
    import typer.main

    from dpassay.cli.main import app

    group = typer.main.get_command(app)
    return "\n\n".join(_sections(group, "dpassay"))


def _sections(group: Any, path: str) -> list[str]:
    found = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        below = f"{path} {name}"
        found += _sections(command, below) if hasattr(command, "commands") else [_section(command, below)]
    return found


def _section(command: Any, path: str) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([path, *(_usage(argument) for argument in arguments), "[OPTIONS]"])
    text = (command.help or "").replace("\b\n", "\n").replace("\f", "")
    parts = [f"## {path}", f"```\n{usage}\n```", _prose(text)]
    if arguments:
        parts.append(_table("argument", [(f"`{a.name.upper()}`", _said(a)) for a in arguments]))
    if options:
        parts.append(_table("option", [(_spelled(option), _said(option)) for option in options if not option.hidden]))
    return "\n\n".join(parts)


def _usage(argument: Any) -> str:
    name = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _prose(text: str) -> str:
    """A command's help: indented lines are examples and stay as they are."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        example = [line for line in lines if line.startswith("  ")]
        said = [line for line in lines if not line.startswith("  ")]
        if said:
            paragraphs.append(_plain(" ".join(said)))
        if example:
            paragraphs.append("```\n" + "\n".join(line.strip() for line in example) + "\n```")
    return "\n\n".join(paragraphs)


def _spelled(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    value = "" if option.is_flag else (option.metavar or "VALUE").upper()
    return ", ".join(f"`{name}`" for name in names) + (f" {_plain(value)}" if value else "")


def _said(parameter: Any) -> str:
    text = _plain(getattr(parameter, "help", None) or "")
    if parameter.required:
        return f"{text} Required."
    default = parameter.default
    if default in (None, False, (), []) or callable(default):
        return text
    return f"{text} Default: `{default}`."


def _plain(text: str) -> str:
    """Text in which nothing is taken for Markdown, and options are code."""
    escaped = re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", escaped)


def _table(what: str, rows: list[tuple[str, str]]) -> str:
    return "\n".join([f"| {what} | meaning |", "|---|---|", *(f"| {name} | {said} |" for name, said in rows)])


def notebook_page(path: Path, run: bool) -> str:
    """A notebook as Markdown: its text, its code and, if it is run, what the code gives."""
    notebook = json.loads(path.read_text())
    if run:
        notebook = _run(path)
    parts = []
    for place, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            if not place:
                parts.append(f"This page is a notebook: {{download}}`{path.name} <{path.name}>`.")
        else:
            parts.append(f"```python\n{source}\n```")
            printed = [output for output in cell.get("outputs", []) if output.get("name") == "stdout"]
            if printed:
                parts.append(_text("".join("".join(output["text"]) for output in printed)))
            parts += [shown for output in cell.get("outputs", []) if (shown := _shown(output.get("data", {})))]
    return "\n\n".join(parts) + "\n"


def _run(path: Path) -> dict[str, Any]:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    return notebook  # type: ignore[no-any-return]


def _shown(data: Any) -> str:
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            shown = re.sub(r"\n\s*\n", "\n", "".join(data[kind]))
            return f'```{{raw}} html\n<div class="cell-output">{shown}</div>\n```'
    return _text("".join(data["text/plain"])) if "text/plain" in data else ""


def _text(text: str) -> str:
    return f"```text\n{COLOURS.sub('', text).rstrip()}\n```"


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix == ".ipynb":
        source[0] = notebook_page(path, os.environ.get("DPASSAY_RUN_NOTEBOOKS") == "1")
    if MARKER in source[0]:
        source[0] = source[0].replace(MARKER, command_line())
    source[0] = _coq_links(source[0])
    if path.name == "README.md":
        others = sorted(page.stem for page in path.parent.glob("*.md") if page != path)
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(others) + "\n```\n"


def _coq_links(text: str) -> str:
    """Links to lines of the files that Coq checks, as links to their pages on the site."""
    return STATED.sub(lambda found: f'<a href="coq/{found[2]}.html#{found[3]}"><code>{found[1][1:-1]}</code></a>', text)


def _coq_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that Coq checks, with its lines numbered."""
    for path in sorted(COQ.glob("*.v")):
        lines = path.read_text(encoding="utf-8").splitlines()
        body = "\n".join(f'<span id="L{i}">{html.escape(line)}</span>' for i, line in enumerate(lines, 1))
        title = f"proofs/{path.name}"
        context = {"title": title, "parents": [], "body": f"<h1>{title}</h1>\n<pre>{body}</pre>"}
        yield f"proofs/coq/{path.stem}", context, "page.html"


def _docstring(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: |V| is no substitution."""
    example = False  # which a blank line ends
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        lines[i] = line if example else line.replace("|", r"\|")


_SIGNATURE = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')


def _signatures(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """The lines of a long signature are no list of definitions, as Sphinx writes them."""

    def lines(found: re.Match[str]) -> str:
        inner = found[1].replace("<dd>", '<div class="sig-line">').replace("</dd>", "</div>")
        return f"<div>\n{inner}</div>"

    if "body" in context:
        context["body"] = _SIGNATURE.sub(lines, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx make these pages as it reads them."""
    app.connect("source-read", _read)
    app.connect("html-collect-pages", _coq_pages)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("html-page-context", _signatures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
