"""Where parameters stand: params.yaml, and the parts of it that have files of their own beneath stages/params.

DVC reads a params file anew for every stage that names a key of it, so what stages name stands in small files: data sets, a model's arms
and sizes, what a profile affords, what holds for all. `gathered` puts it together as one tree; `prefix` says where in it a file's keys belong.
"""

from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stages.errors import ParamsError

WHOLE = "params.yaml"
PARTS = "stages/params"
SHARED = "protocol.yaml"
FOLDERS = {"models": "models.{}", "budgets": "profiles.{}", "datasets": "datasets"}  # a folder of parts: where in the tree its files belong, by name


def read_yaml(path: Path):
    """Plain YAML 1.2 data: duplicate keys, tags and bytes that are not UTF-8 are ParamsErrors."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(f"{path.name} is missing", where=str(path), remedy="run from the project's root") from None
    except UnicodeDecodeError as error:
        raise ParamsError("the file is not UTF-8", where=str(path), found=str(error)) from None
    except (YAMLError, ValueError) as error:
        raise ParamsError("the file is not plain YAML", where=str(path), found=" ".join(str(error).split())) from None


def prefix(file: str) -> str | None:
    """The dotted key under which a file's own keys belong ("" for the whole); None where it holds no parameters of the project."""
    if file in (WHOLE, f"{PARTS}/{SHARED}"):
        return ""
    place = PurePosixPath(file)
    inner = FOLDERS.get(place.parent.name) if place.parent.parent == PurePosixPath(PARTS) and place.suffix == ".yaml" else None
    return inner and inner.format(place.stem)


def gathered(path: Path) -> Any:
    """params.yaml and the parts that stand beside it, as one tree. ParamsError where a key stands twice or a part is no mapping."""
    whole = read_yaml(path)
    if not isinstance(whole, dict):
        return whole  # the schema says what is wrong with it
    parts = path.parent / PARTS
    for file in sorted((*parts.glob(SHARED), *(found for folder in FOLDERS for found in (parts / folder).glob("*.yaml")))):
        inner = whole
        for key in filter(None, (prefix(file.relative_to(path.parent).as_posix()) or "").split(".")):
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
        part = read_yaml(file)
        if not isinstance(inner, dict) or not isinstance(part, dict):
            raise ParamsError("these parameters are no mapping", where=str(file), expected="keys and values", found=type(part).__name__)
        if twice := sorted(set(part) & set(inner)):
            raise ParamsError("parameters stand twice", where=str(file), found=f"{', '.join(twice)}, also in {path}", remedy="delete one of them")
        inner.update(part)
    run, profiles = whole.get("run"), whole.get("profiles")
    if isinstance(run, dict) and isinstance(profiles, dict) and isinstance(profiles.get(run.get("profile")), dict):
        for key, content in profiles[run["profile"]].items():  # the same object where `run` is an alias; a copy of it lacks the parts
            run.setdefault(key, content)
    return whole
