"""The parameters that made a number, held to those of today."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from stages import params
from stages.audit.case import REPRO, Case
from stages.audit.finding import Problem
from stages.errors import TradewindError


def parameters(case: Case) -> Iterator[Problem]:
    """The parameters that made the number are those of params.yaml today: by the lock's keys,
    and by each value the record names."""
    whole = completed(case.root)

    @cache
    def at(key: str) -> dict[str, list[Any]]:
        """The leaves of a part by their names, as written and with defaults; all for ""."""
        return named((case.params, whole), key)

    for node in case.chain.nodes:
        if case.earlier(node):
            continue
        entry = case.locks.producer(node.homes[0])
        told = whole_keys(entry.params) if entry else {}
        for key, (file, then) in told.items():
            now = dig(case.params, key)
            if now != then:
                yield Problem(
                    "FAIL",
                    "params.yaml",
                    f"stale: {node.producer} was run with {key} = {short(then)}, {file} now says "
                    f"{short(now)}; {REPRO}",
                    node.producer,
                )
        found = chosen(case, node)
        for name, content in leaves(node.record.get("params", {})):
            known = [one for key in told or ("",) for one in at(key).get(name, ())]
            # of another kind: derived, not copied
            alike = [value for value in known if kind(value) is kind(content)]
            if alike and content not in alike and content not in found:
                yield Problem(
                    "FAIL",
                    node.path,
                    f"stale: the record of {node.producer} says {name} = {short(content)}, the "
                    f"parameters say {' or '.join(sorted({short(value) for value in alike}))}; "
                    f"{REPRO}",
                    node.producer,
                )


def chosen(case: Case, node: Any) -> list[Any]:
    """The values that a search has chosen for a node that read them (one may go by another name
    there: a span is a window, too); best.yaml is held to the search's own trials (derivable.py)."""
    found: list[Any] = []
    for path in node.record.get("inputs", {}):
        if path.endswith("/best.yaml") and (case.root / path).is_file():
            content = params.read_yaml(case.root / path)
            found += [value for _, value in leaves(content if isinstance(content, dict) else {})]
    return found


def whole_keys(told: dict[str, dict[Any, Any]]) -> dict[str, tuple[str, Any]]:
    """A lock's parameters by their place in the whole: the file that they stand in, and the
    value."""
    placed = {file: params.prefix(file) for file in told}
    return {
        ".".join(filter(None, (placed[file], key))): (file, content)
        for file, keys in told.items()
        if placed[file] is not None
        for key, content in keys.items()
    }


def completed(root: Path) -> dict[Any, Any]:
    """params.yaml with what it leaves to the schema's defaults, as stages are handed it; {}
    where it is not valid (`opened` says so)."""
    try:
        return params.load(root / "params.yaml").model_dump(mode="json")
    except TradewindError:
        return {}


def kind(content: Any) -> type:
    """The JSON type of a value, whole numbers and others being one."""
    return float if type(content) is int else type(content)


def named(sides: Iterable[dict[Any, Any]], key: str) -> dict[str, list[Any]]:
    """The leaves of a part of parameters by their names; of all of them where the key is ""."""
    found: dict[str, list[Any]] = {}
    for side in sides:
        part = {key.rpartition(".")[2]: dig(side, key)} if key else side
        for name, content in leaves(part):
            found.setdefault(name, []).append(content)
    return found


def leaves(content: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of everything in nested mappings that is no mapping."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield str(name), value


def dig(params: Any, key: str) -> Any:
    """The value at a dotted key, None where there is none."""
    for part in key.split("."):
        params = params.get(part) if isinstance(params, dict) else None
    return params


def short(content: Any) -> str:
    """A value in at most 80 characters."""
    text = json.dumps(content, sort_keys=True, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def read_params(root: Path) -> dict[Any, Any]:
    """params.yaml and its parts as plain data. ParamsError where they cannot be read."""
    whole = params.gathered(root / "params.yaml")
    return whole if isinstance(whole, dict) else {}
