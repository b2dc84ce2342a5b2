"""Where parameters stand: params.yaml, the parts of it that have files of their own beneath
stages/params, and the cells of each experiment (reports/EXPERIMENT/cells.yaml).

DVC reads a params file anew for every stage that names a key of it, so what stages name stands in
small files: data sets, a model's arms and sizes, what a profile affords, sweeps, what holds for
all. `gathered` puts it together as one tree; `prefix` says where a file's keys go.
"""

import copy
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.resolver import VersionedResolver

from stages.errors import ParamsError

WHOLE = "params.yaml"
PARTS = "stages/params"
CELLS = "reports/*/cells.yaml"
# Files that hold parameters, and where in the tree their keys belong.
PLACES = {
    WHOLE: "",
    f"{PARTS}/*.yaml": "",
    f"{PARTS}/datasets/*.yaml": "datasets",
    f"{PARTS}/models/*.yaml": "models.{file}",
    f"{PARTS}/budgets/*/*.yaml": "profiles.{folder}",
    f"{PARTS}/families/*/*.yaml": "profiles.{folder}.families.{file}",
    CELLS: "cells.{folder}",
}


def read_yaml(path: Path) -> Any:
    """Plain YAML 1.2 data: duplicate keys, tags and bytes that are not UTF-8 are ParamsErrors."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(
            f"{path.name} is missing", where=str(path), remedy="run from the project's root"
        ) from None
    except UnicodeDecodeError as error:
        raise ParamsError("the file is not UTF-8", where=str(path), found=str(error)) from None
    except (YAMLError, ValueError) as error:
        raise ParamsError(
            "the file is not plain YAML",
            where=str(path),
            found=" ".join(str(error).split()).split(" To suppress this check")[0],
        ) from None


class Resolver(VersionedResolver):
    """What kind of scalar a text is, by YAML 1.2: the parser in C knows no other version. Looked
    up once a document, where the library asks anew for every scalar."""

    processing_version = (1, 2)

    @cached_property
    def versioned_resolver(self) -> Any:
        """The patterns of scalars by their first character."""
        return super().versioned_resolver


def plain(text: str) -> Any:
    """The text's data, by the parser in C. YAMLError or ValueError where it refuses."""
    parser = YAML(typ="safe")
    parser.Resolver = Resolver
    return parser.load(text)


kept = lru_cache(maxsize=256)(plain)  # the same files are read more than once in a process


def parsed(text: str) -> Any:
    """The text's data, by the parser in C; what that one refuses is told by the one in Python,
    which names what is wrong."""
    try:
        return copy.deepcopy(kept(text))
    except YAMLError:
        return YAML(typ="safe", pure=True).load(text)


def prefix(file: str) -> str | None:
    """The dotted key under which a file's own keys belong ("" for the whole); None where it
    holds no parameters of the project."""
    path = PurePosixPath(file)
    for pattern, place in PLACES.items():
        if path.match(pattern) and len(path.parts) == pattern.count("/") + 1:
            return place.format(file=path.stem, folder=path.parent.name)
    return None


def holder(path: Path, key: str) -> str:
    """The file in which a dotted key of the whole stands; params.yaml (`path`) where no part that
    stands beside it holds the key."""
    if (path.parent / key).is_file():  # a problem of cells is told by their file
        return str(path.parent / key)
    words, nearest = key.split("."), str(path)
    for file in (*(path.parent / PARTS).rglob("*.yaml"), *path.parent.glob(CELLS)):
        home = (prefix(file.relative_to(path.parent).as_posix()) or "").split(".")
        home = [word for word in home if word]
        if words[: len(home)] != home:
            continue
        rest = words[len(home) :]
        content = read_yaml(file)
        if rest and isinstance(content, dict) and rest[0] in content:
            return str(file)
        if home and home[0] in ("models", "cells"):  # a file is all that there is of it
            nearest = str(file)
    return nearest


def gathered(path: Path) -> Any:
    """params.yaml and the parts that stand beside it, as one tree. ParamsError for a key twice,
    a part that is no mapping, a stray file, cells of another profile than params.yaml's."""
    whole = read_yaml(path)
    if not isinstance(whole, dict):
        return whole  # the schema says what is wrong with it
    files = sorted((path.parent / PARTS).rglob("*.yaml"))
    for file in (*files, *sorted(path.parent.glob(CELLS))):
        if (home := prefix(file.relative_to(path.parent).as_posix())) is None:
            raise ParamsError(
                "no parameters belong here",
                where=str(file),
                expected=", ".join(PLACES),
                remedy="move or delete the file",
            )
        inner = whole
        for key in filter(None, home.split(".")):
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
        part = read_yaml(file)
        if not isinstance(inner, dict) or not isinstance(part, dict):
            raise ParamsError(
                "these parameters are no mapping",
                where=str(file),
                expected="keys and values",
                found=type(part).__name__,
            )
        if twice := sorted(set(part) & set(inner)):
            raise ParamsError(
                "parameters stand twice",
                where=str(file),
                found=f"{', '.join(twice)}, also in {path}",
                remedy="delete one of them",
            )
        inner.update(part if file.name != "cells.yaml" else by_profile(file, part, whole))
    run, profiles = whole.get("run"), whole.get("profiles")
    if (
        isinstance(run, dict)
        and isinstance(profiles, dict)
        and isinstance(profiles.get(run.get("profile")), dict)
    ):
        for key, content in profiles[
            run["profile"]
        ].items():  # the same object where `run` is an alias; a copy of it lacks the parts
            run.setdefault(key, content)
    return whole


def by_profile(file: Path, content: dict[Any, Any], whole: dict[Any, Any]) -> dict[Any, Any]:
    """An experiment's cells, profile -> cells. ParamsError where the file's last line names another
    profile than params.yaml's, or the file lacks a profile."""
    cells = {name: part for name, part in content.items() if name != "run"}
    profiles, run = whole.get("profiles"), whole.get("run")
    lacking = [name for name in profiles if name not in cells] if isinstance(profiles, dict) else []
    word = run.get("profile") if isinstance(run, dict) else None
    if lacking or "run" not in content:
        raise ParamsError(
            "an experiment's cells are not told of every profile",
            where=str(file),
            expected="every profile of params.yaml, and `run: *PROFILE` at the end",
            found=f"no {', '.join(lacking or ['run'])}",
            remedy="add it; a profile without cells is `NAME: &NAME {cells: {}}`",
        )
    named = [name for name, part in cells.items() if part is content["run"]]
    if word is not None and word not in named:
        raise ParamsError(
            "two files name different profiles",
            where=str(file),
            expected=f"run: *{word}, as in params.yaml",
            found=f"run: *{named[0]}" if named else "no alias of a profile",
            remedy=f"run `python -m flows.profiles --set {word}`",
        )
    return cells
