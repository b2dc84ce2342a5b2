"""Writes the closures that the project's dvc.yaml files ask for: data/code/NAME.json, in git.

data/code/winds.train.json among a stage's deps asks for the closure of stages.winds.train;
data/code/fields.models.${item.model}.json asks for one a module of stages/fields/models. DVC then
runs what an edit touches, and no more.
"""

import argparse
import difflib
import re
import sys
from pathlib import Path

from stages import files
from stages.code.project import HOME, PACKAGE, Project, list_of
from stages.errors import InputError, reported

DECLARED = ("dvc.yaml", "data/*/dvc.yaml", "reports/*/dvc.yaml")
_COMMENT = re.compile(r"(?m)(^|\s)#.*$")
_DEMAND = re.compile(rf"(?<![\w.-]){HOME.as_posix()}/((?:\$\{{[^}}]*\}}|[^\s\"',{{}}\[\]:])+)")
_WILDCARD = re.compile(r"\$\{[^}]*\}")


def demanded(project: Project) -> list[str]:
    """The modules whose closures stand among the deps of any dvc.yaml of the project, sorted.

    `${...}` in a name stands for one part, or a piece of one: all modules that fit are demanded.
    InputError for a name that is no module's.
    """
    found: set[str] = set()
    for file in (file for pattern in DECLARED for file in sorted(project.root.glob(pattern))):
        text = _COMMENT.sub("", file.read_text(encoding="utf-8", errors="replace"))
        for name in _DEMAND.findall(text):
            found |= _expanded(name, project, file)
    return sorted(found)


def _expanded(name: str, project: Project, file: Path) -> set[str]:
    """The modules that one list's file name stands for."""
    stem = f"{PACKAGE}.{name.removesuffix('.json')}"
    pattern = r"[^.]+".join(map(re.escape, _WILDCARD.split(stem)))
    fitting = {module for module in project.modules if re.fullmatch(pattern, module)}
    if fitting and name.endswith(".json"):
        return fitting
    near = difflib.get_close_matches(stem, project.modules, 3)
    raise InputError(
        "a list of code is asked for, and there is no such module",
        where=file.relative_to(project.root).as_posix(),
        expected=" or ".join(str(list_of(module)) for module in near),
        found=f"{HOME}/{name}",
        remedy="mend the name, or write the module",
    )


def write() -> None:
    """Every demanded closure beneath data/code, all or none."""
    from stages import records  # loads NumPy, which those who ask for a closure need not have

    with files.guard("code"), records.timed("code", "all"):
        project = Project()
        closures = {module: project.closure(module) for module in demanded(project)}
        with files.atomic_folder(HOME) as folder:
            for module, found in closures.items():
                file = folder / list_of(module).name
                file.write_text(files.json_text(found), encoding="utf-8")
                files.fault("closure")


def main(arguments: list[str] | None = None) -> int:
    """Write every list; the exit code."""
    text = "What makes a stage stale: writes data/code, a list a module that dvc.yaml asks for."
    argparse.ArgumentParser(prog="python -m stages.code", description=text).parse_args(arguments)
    return reported(write)


if __name__ == "__main__":
    sys.exit(main())
