"""What a package defines: its modules, functions, classes and constants, and what each name in them refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dpassay.scan.reading.libraries import DRAWING, canonical
from dpassay.scan.reading.names import PRIVACY, claim_in

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Module:
    """One parsed file: `file` is what reports show, `name` the dotted name under which others import it."""

    file: str
    name: str
    tree: ast.Module
    text: str
    is_package: bool = False
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, FunctionSource] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)

    @cached_property
    def about_privacy(self) -> bool:
        """Whether the file speaks of privacy at all."""
        return PRIVACY.search(self.text) is not None

    @cached_property
    def lines(self) -> list[str]:
        """The lines of its text."""
        return self.text.splitlines()

    @cached_property
    def claim(self) -> str:
        """What its documentation claims."""
        return claim_in(ast.get_docstring(self.tree) or "")


@dataclass(eq=False)
class FunctionSource:
    """A function or method of the package."""

    name: str
    node: FunctionNode
    module: Module
    owner: Class | None = None

    @property
    def qualified(self) -> str:
        """Its name with the class it belongs to."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @cached_property
    def documentation(self) -> str:
        """Its docstring, and its class's."""
        own = ast.get_docstring(self.node) or ""
        return own if self.owner is None else f"{own}\n\n{self.owner.documentation}"

    @cached_property
    def claim(self) -> str:
        """The sentence of its documentation that claims differential privacy."""
        return claim_in(self.documentation)

    @cached_property
    def parameters(self) -> list[tuple[ast.arg, ast.expr | None]]:
        """Each parameter with its default."""
        args = self.node.args
        plain = [*args.posonlyargs, *args.args]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
        pairs = list(zip(plain, defaults, strict=True)) + list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
        more = [one for one in (args.vararg, args.kwarg) if one is not None]
        return pairs + [(one, None) for one in more]

    @cached_property
    def statements(self) -> int:
        """How many statements it has, of all depths."""
        return sum(isinstance(node, ast.stmt) for node in self.nodes)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax tree."""
        return list(ast.walk(self.node))

    @cached_property
    def text(self) -> str:
        """Its code without comments."""
        return ast.unparse(self.node)

    @cached_property
    def called(self) -> set[str]:
        """The last names of everything that it calls or reads as an attribute."""
        names = {one.attr for one in ast.walk(self.node) if isinstance(one, ast.Attribute)}
        return names | {
            one.func.id for one in ast.walk(self.node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        }

    @cached_property
    def decorators(self) -> set[str]:
        """The last names of its decorators."""
        plain = (one.func if isinstance(one, ast.Call) else one for one in self.node.decorator_list)
        return {dotted(one).rpartition(".")[2] for one in plain}


@dataclass(eq=False)
class Class:
    """A class of the package."""

    name: str
    node: ast.ClassDef
    module: Module
    methods: dict[str, FunctionSource] = field(default_factory=dict)
    fields: dict[str, ast.expr | None] = field(default_factory=dict)  # class attributes with their values

    @cached_property
    def documentation(self) -> str:
        """Its docstring."""
        return ast.get_docstring(self.node) or ""

    @cached_property
    def attributes(self) -> dict[str, list[str]]:
        """Every attribute of self that is assigned, and the methods that do it."""
        found: dict[str, list[str]] = {}
        for name, method in self.methods.items():
            for node in ast.walk(method.node):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                    found.setdefault(node.attr, []).append(name)
        return found


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def dotted(node: ast.AST) -> str:
    """A name with dots, as written; empty for anything else.

    >>> dotted(ast.parse("np.random.laplace", mode="eval").body)
    'np.random.laplace'
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


class Index:
    """All modules of what is scanned, and the way from a name to what it refers to."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = modules
        self.by_name = {one.name: one for one in modules}
        for one in modules:
            _fill(one)

    @cached_property
    def drawing(self) -> set[str]:
        """The names of functions that draw random numbers, or call one that does, as far as names tell."""
        calls: dict[str, set[str]] = {}
        for function in self.functions():
            calls.setdefault(function.name, set()).update(function.called)
        known = {name for name, called in calls.items() if called & DRAWING}
        callers: dict[str, set[str]] = {}
        for name, called in calls.items():
            for one in called & calls.keys():
                callers.setdefault(one, set()).add(name)
        left = list(known)
        while left:
            for one in callers.get(left.pop(), set()) - known:
                known.add(one)
                left.append(one)
        return known

    def functions(self) -> Iterator[FunctionSource]:
        """All functions and methods, in the order of files and lines."""
        for module in self.modules:
            yield from module.functions.values()
            for one in module.classes.values():
                yield from one.methods.values()

    def resolve(self, module: Module, name: str, depth: int = 0) -> FunctionSource | Class | Module | ast.expr | str:
        """What a dotted name in a module refers to: something of the package, or the full name of a library's."""
        head, _, rest = name.partition(".")
        found: FunctionSource | Class | Module | ast.expr | str
        if head in module.functions:
            found = module.functions[head]
        elif head in module.classes:
            found = module.classes[head]
        elif head in module.imports:
            found = self._imported(module.imports[head], depth)
        elif head in module.constants:
            found = module.constants[head]
        else:
            return canonical(name)
        for part in rest.split(".") if rest else ():
            found = self._member(found, part, depth)
        return found

    def _imported(self, full: str, depth: int) -> FunctionSource | Class | Module | ast.expr | str:
        if full in self.by_name:
            return self.by_name[full]
        base, _, last = full.rpartition(".")
        if base in self.by_name and depth < 5:
            return self._member(self.by_name[base], last, depth)
        return canonical(full)

    def _member(
        self, of: FunctionSource | Class | Module | ast.expr | str, name: str, depth: int
    ) -> FunctionSource | Class | Module | ast.expr | str:
        if isinstance(of, Module):
            if f"{of.name}.{name}" in self.by_name and name not in of.functions and name not in of.classes:
                return self.by_name[f"{of.name}.{name}"]
            return self.resolve(of, name, depth + 1) if depth < 5 else ""
        if isinstance(of, Class):
            return of.methods.get(name) or of.fields.get(name) or ""
        return canonical(f"{of}.{name}") if isinstance(of, str) and of else ""

    def lineage(self, one: Class) -> list[Class]:
        """A class and those of the package that it inherits from, nearest first."""
        line, left = [one], [one]
        while left and len(line) < 12:
            current = left.pop(0)
            for base in current.node.bases:
                found = self.resolve(current.module, dotted(base)) if dotted(base) else ""
                if isinstance(found, Class) and found not in line:
                    line.append(found)
                    left.append(found)
        return line

    def method(self, one: Class, name: str) -> FunctionSource | None:
        """A method, or the one that is inherited."""
        return next((each.methods[name] for each in self.lineage(one) if name in each.methods), None)


def _fill(module: Module) -> None:
    for node in _top_level(module.tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.imports[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            _import_from(module, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions[node.name] = FunctionSource(node.name, node, module)
        elif isinstance(node, ast.ClassDef):
            module.classes[node.name] = _class(node, module)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            module.constants[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            module.constants[node.target.id] = node.value
    for inner in ast.walk(module.tree):  # imports inside functions
        if isinstance(inner, ast.ImportFrom):
            _import_from(module, inner, keep=True)
        elif isinstance(inner, ast.Import):
            for alias in inner.names:
                name = alias.asname or alias.name.partition(".")[0]
                module.imports.setdefault(name, alias.name if alias.asname else name)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [line for one in node.handlers for line in one.body]
            yield from _top_level([*handlers, *node.body])


def _import_from(module: Module, node: ast.ImportFrom, keep: bool = False) -> None:
    base = node.module or ""
    if node.level:
        parts = module.name.split(".")
        up = parts[: len(parts) - node.level + module.is_package] if node.level <= len(parts) + 1 else []
        base = ".".join([*up, base] if base else up)
    for alias in node.names:
        name = alias.asname or alias.name
        if not (keep and name in module.imports):
            module.imports[name] = f"{base}.{alias.name}" if base else alias.name


def _class(node: ast.ClassDef, module: Module) -> Class:
    made = Class(node.name, node, module)
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            made.methods.setdefault(one.name, FunctionSource(one.name, one, module, made))
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            made.fields[one.target.id] = one.value
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            made.fields[one.targets[0].id] = one.value
    return made
