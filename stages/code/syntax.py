"""What a file of Python means: a digest of its syntax tree, in a form that all Pythons share.

`ast.dump` differs between versions, so the tree is written here. What changes nothing that a stage
computes is left out: comments and layout (the tree has none), docstrings, annotations of arguments,
results and plain variables, blocks under TYPE_CHECKING, imports of names that only annotate.
"""

import ast
import functools
import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stages.errors import DataError

# What is imported from here by its own name serves annotations or is told apart by its use.
TYPING = frozenset({"typing", "collections.abc", "jaxtyping"})

_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores", "returns"})
_FIELDS = {
    kind: tuple(name for name in kind._fields if name not in _SKIPPED)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = frozenset({"body", "orelse", "finalbody"})


@dataclass(frozen=True)
class Import:
    """`import module` (names is None) or `from module import names`; level counts leading dots."""

    module: str
    names: tuple[str, ...] | None
    level: int
    line: int


@dataclass(frozen=True)
class Source:
    """One file: the digest of its meaning, what it imports, the strings that stand in it."""

    digest: str
    imports: tuple[Import, ...]
    strings: frozenset[str]


def _is_typing(test: ast.expr) -> bool:
    """Whether a condition is TYPE_CHECKING, under whatever module's name."""
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def _only_annotates(statement: ast.ImportFrom) -> bool:
    """Whether it binds names of TYPING to themselves: their use tells all that they mean."""
    own = all(alias.asname is None and alias.name != "*" for alias in statement.names)
    return own and not statement.level and statement.module in TYPING


def _without_docstring(statements: list[ast.stmt]) -> list[ast.stmt]:
    first = statements[0] if statements else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return statements[isinstance(first.value.value, str) :]
    return statements


class _Writer:
    """Writes a syntax tree as lines, and gathers imports and strings on the way.

    A node is its kind, then `.field` and value for every field that is not empty, then `)`. No line
    holds a line end, so different trees have different texts.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: list[Import] = []
        self.strings: set[str] = set()
        self.in_class = False

    def node(self, node: ast.AST) -> None:
        kind, write = type(node), self.lines.append
        if kind is ast.Name:
            write(f"'{node.id}")  # type: ignore[attr-defined]
            return
        if special := _SPECIAL.get(kind):
            special(self, node)
            return
        write(kind.__name__)
        for name in _FIELDS[kind]:
            value = getattr(node, name, None)
            if value is None or (value.__class__ is list and not value):
                continue
            write(f".{name}")
            if isinstance(value, ast.AST):
                self.node(value)
            elif value.__class__ is not list:
                self.constant(value)
            elif name in _BLOCKS:
                self.block(value, name == "body")
            else:
                self.many(value)
        write(")")

    def many(self, values: Sequence[object]) -> None:
        self.lines.append("[")
        for value in values:
            if isinstance(value, ast.AST):
                self.node(value)
            elif value is None:  # no key before `**`, no default: not the constant
                self.lines.append("-")
            else:  # the names of `global`
                self.constant(value)
        self.lines.append("]")

    def constant(self, value: object) -> None:
        """Type and value; ascii() is alike in all Pythons, and hex() has no limit of digits."""
        told = hex(value) if isinstance(value, int) else ascii(value)
        self.lines.append(f"={type(value).__name__} {told}")

    def block(self, statements: list[ast.stmt], needed: bool) -> None:
        """A block's statements that mean something; `pass` for a needed one that has none."""
        kept = list(self.kept(statements))
        self.many(kept or ([ast.Pass()] if needed else []))

    def kept(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Without what only type checkers read; an annotated assignment as a plain one.

        A class keeps its annotations: they are the fields of dataclasses and of pydantic's models.
        """
        for statement in statements:
            if isinstance(statement, ast.If) and _is_typing(statement.test):
                yield from self.kept(statement.orelse)
            elif isinstance(statement, ast.AnnAssign) and not self.in_class:
                if statement.value is not None:
                    yield ast.Assign(targets=[statement.target], value=statement.value)
            elif isinstance(statement, ast.ImportFrom) and _only_annotates(statement):
                continue
            else:
                yield statement

    # --- nodes that are not written as they stand

    def documented(self, node: ast.AST) -> None:
        """A module, class or function: without its docstring, in a scope of its own."""
        outer, self.in_class = self.in_class, isinstance(node, ast.ClassDef)
        self.lines.append(type(node).__name__)
        for name in _FIELDS[type(node)]:
            value: Any = getattr(node, name, None)
            if name == "body":
                self.block(_without_docstring(value), not isinstance(node, ast.Module))
            elif isinstance(value, ast.AST):
                self.node(value)
            elif isinstance(value, str):
                self.constant(value)
            elif value:
                self.lines.append(f".{name}")
                self.many(value)
        self.lines.append(")")
        self.in_class = outer

    def argument(self, node: ast.arg) -> None:
        self.lines.append(f"arg {node.arg}")

    def attribute(self, node: ast.Attribute) -> None:
        self.lines.append(f"Attribute {node.attr}")
        self.node(node.value)

    def literal(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)
        self.constant(node.value)

    def joined(self, node: ast.JoinedStr) -> None:
        """An f-string: its texts joined, which 3.12 parts in other places than 3.11."""
        parts: list[Any] = []
        for value in node.values:
            part = value.value if isinstance(value, ast.Constant) else value
            if parts and isinstance(part, str) and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        self.lines.append("JoinedStr")
        self.many([part for part in parts if part != ""])

    def formatted(self, node: ast.FormattedValue) -> None:
        self.lines.append(f"FormattedValue {node.conversion}")
        self.node(node.value)
        specification = node.format_spec
        if isinstance(specification, ast.JoinedStr) and any(
            getattr(part, "value", "") != "" for part in specification.values
        ):
            self.node(specification)
        self.lines.append(")")

    def call(self, node: ast.Call) -> None:
        """A call; one of import_module or __import__ with the name as a constant is an import."""
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        if name in ("import_module", "__import__") and node.args:
            asked = node.args[0]
            if isinstance(asked, ast.Constant) and isinstance(asked.value, str):
                self.imports.append(Import(asked.value, None, 0, node.lineno))
        self.lines.append("Call")
        self.node(node.func)
        self.many(node.args)
        self.many(node.keywords)

    def imported(self, node: ast.Import) -> None:
        self.imports += [Import(alias.name, None, 0, node.lineno) for alias in node.names]
        self.lines.append("Import")
        self.many(node.names)

    def imported_from(self, node: ast.ImportFrom) -> None:
        names = tuple(alias.name for alias in node.names)
        self.imports.append(Import(node.module or "", names, node.level or 0, node.lineno))
        self.lines.append(f"ImportFrom {node.level or 0} {node.module or ''}")
        self.many(node.names)


_SPECIAL: dict[type[ast.AST], Callable[[_Writer, Any], None]] = {
    **dict.fromkeys(_DOCUMENTED, _Writer.documented),
    ast.arg: _Writer.argument,
    ast.Attribute: _Writer.attribute,
    ast.Constant: _Writer.literal,
    ast.JoinedStr: _Writer.joined,
    ast.FormattedValue: _Writer.formatted,
    ast.Call: _Writer.call,
    ast.Import: _Writer.imported,
    ast.ImportFrom: _Writer.imported_from,
}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for circles of objects: trees have none, and it takes half of parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@functools.cache
def read(source: str | bytes, where: str = "") -> Source:
    """What one file's text means. DataError names `where` and the line that is not Python."""
    try:
        with _uncollected():
            writer = _Writer()
            writer.node(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise DataError(
            "a file of the project cannot be read as Python",
            where=f"{where}:{line}" if line else where,
            found=str(getattr(error, "msg", error)),
            remedy="mend it; what rests on it cannot be known before",
        ) from None
    digest = hashlib.sha256("\n".join(writer.lines).encode()).hexdigest()
    return Source(digest, tuple(writer.imports), frozenset(writer.strings))


def meaning(source: str | bytes) -> str:
    """SHA-256, in hex, of what a file's text means, the same under every Python from 3.11 on.

    Two texts that differ in comments, layout, docstrings, annotations of arguments, results and
    plain variables, or in blocks under TYPE_CHECKING have one meaning. DataError if it is not
    Python.
    """
    return read(source).digest
