"""What the arms and sizes of a model may set: the arguments of its class, read from its file
without importing it (a model imports torch, parameters must not).

The model itself refuses what is beyond that (its `problems`, `misfits`) when it is built.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stages.params.base import nearest
from stages.params.sections import Model

HOME = Path(__file__).parents[1]


def argument_problems(models: Mapping[str, Model]) -> list[str]:
    """Arguments that a model's class does not have, numbers below 0, and counts below 1."""
    problems = []
    for name, model in models.items():
        text = "".join(sources().get(name, []))
        for key, argument, value in told(name, model):
            # an argument that its file annotates needs no parsing of the file, which takes longer
            known = None if f" {argument}: " in text else accepted(name)
            if known is not None and argument not in known:
                problems.append(f"{key}: the model has no such argument{nearest(argument, known)}")
            listed = isinstance(value, tuple)
            if listed and any(one < 1 for one in value):
                problems.append(f"{key}: whole numbers of at least 1, not {[*value]}")
            elif not listed and not isinstance(value, str) and value < 0:
                problems.append(f"{key}: a number of at least 0, not {value!r}")
    return problems


def told(name: str, model: Model) -> Iterator[tuple[str, str, Any]]:
    """Every argument that a model's arms and sizes set: its key, its name, its value."""
    groups: dict[str, Mapping[str, Mapping[str, Any]]] = {"arms": model.arms, "sizes": model.sizes}
    for group, forms in groups.items():
        for form, arguments in forms.items():
            for argument, value in arguments.items():
                yield f"models.{name}.{group}.{form}.{argument}", argument, value


@cache
def sources() -> dict[str, list[str]]:
    """The text of every model's file, by the model's name."""
    found: dict[str, list[str]] = {}
    for file in (*HOME.glob("*/models/*.py"), *HOME.glob("*/*/models/*.py")):
        found.setdefault(file.stem, []).append(file.read_text(encoding="utf-8"))
    return found


@cache
def accepted(name: str) -> tuple[str, ...] | None:
    """The arguments of a model's class; None where its file does not tell them."""
    texts = sources().get(name, [])
    if len(texts) != 1:
        return None
    for node in ast.parse(texts[0]).body:
        if isinstance(node, ast.ClassDef) and node.name.lower() == name.replace("_", ""):
            return signature(node)
    return None


def signature(node: ast.ClassDef) -> tuple[str, ...] | None:
    """The names that the class' own __init__ takes; None where it takes any, or inherits it."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            given = inner.args
            if given.kwarg or given.vararg:
                return None
            names = (one.arg for one in (*given.args[1:], *given.kwonlyargs))
            return tuple(name for name in names if not name.endswith("_dim"))  # the data say these
    return None
