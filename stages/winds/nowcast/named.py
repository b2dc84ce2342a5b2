"""Which trained cell of the winds a name means: a folder, the word `example`, the name by which the
audit knows cells, or any shorter one that fits no other cell.

A short name leaves parts of EXPERIMENT/PROFILE/DATASET/CELL out, but not the cell; of the cell its
beginning does, where no cell is called just so.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from safetensors import safe_open

from stages.errors import InputError
from stages.params import nearest
from stages.training import store
from stages.winds.nowcast import anywhere

FORM = "EXPERIMENT/PROFILE/DATASET/CELL"
WEIGHTS = "weights.safetensors"
SHOWN, SHOWN_LETTERS = 5, 80


def folder(name: str | Path, root: Path = Path()) -> Path:
    """The folder of the cell of that name. InputError where none or several fit."""
    if not isinstance(name, str | Path):
        raise InputError(
            "that is not the name of a trained cell",
            found=repr(name)[:SHOWN_LETTERS],
            expected=f"a folder, {FORM}, or {anywhere.EXAMPLE}, as a text or a path",
        )
    if Path(name).is_dir() and str(name).strip():
        return Path(name)
    if str(name) == anywhere.EXAMPLE:
        return anywhere.example_cell()
    known = cells(root)
    wanted = str(name).strip("/").split("/")
    if found := meant(str(name), known):
        return known[found]
    _refuse_other_family(name, wanted, root)
    raise InputError(
        "that is not a trained cell",
        where=str(name),
        expected=f"a folder with {WEIGHTS}, {FORM}, or {anywhere.EXAMPLE}",
        found=f"no cell {wanted[-1]!r}"
        + nearest(wanted[-1], {one.rpartition("/")[2] for one in known})
        if known
        else "no cell is trained here",
        remedy="run `make repro`, which trains the cells" if not known else "name one of them",
    )


def meant(name: str, known: Iterable[str]) -> str:
    """The one of some cells' names that a shorter one means, '' where none does. InputError where
    several do."""
    wanted, known = name.strip("/").split("/"), list(known)
    exact = [one for one in known if within(wanted, one.split("/"))]
    found = exact or [one for one in known if within(wanted, one.split("/"), begins=True)]
    if len(found) > 1:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        raise InputError(
            "several trained cells have that name",
            found=name,
            expected=" or ".join(found[:SHOWN] + more),
            remedy="say more of it",
        )
    return found[0] if found else ""


def cells(root: Path) -> dict[str, Path]:
    """Every trained cell of the winds, name -> folder: those whose weights tell a lead."""
    found = {}
    for name, folder in every_cell(root).items():
        with safe_open(str(folder / WEIGHTS), framework="np") as file:
            told = json.loads((file.metadata() or {}).get(store.ENTRY, "{}"))
        if "lead_s" in told.get("prepared", {}):
            found[name] = folder
    return found


def every_cell(root: Path) -> dict[str, Path]:
    """Every trained cell of any family, name -> folder."""
    found = {}
    for path in sorted(root.glob(f"reports/*/*/runs/*/[!.]*/{WEIGHTS}")):
        experiment, profile, _, dataset, name = path.parent.parts[-5:]
        found["/".join((experiment, profile, dataset, name))] = path.parent
    return found


def _refuse_other_family(name: str | Path, wanted: Sequence[str], root: Path) -> None:
    """InputError for the name of a trained cell that is none of the winds."""
    others = [one for one in every_cell(root) if within(wanted, one.split("/"))]
    if others:
        raise InputError(
            "that trained cell is not of the winds, so it answers no nowcast",
            where=str(name),
            expected="a cell that was trained to answer winds a lead ahead",
            found=" or ".join(others[:SHOWN]),
            remedy="name a cell of the winds; a model of fields or sequences is fitted to your own "
            "data by `tradewind.fit`",
        )


def within(wanted: Sequence[str], parts: Sequence[str], begins: bool = False) -> bool:
    """Whether these are, in this order, some of the parts, and the last of them the last; of
    which, where asked, the beginning does."""
    fits = parts[-1].startswith(wanted[-1]) if begins else parts[-1] == wanted[-1]
    before = iter(parts[:-1])
    return fits and all(part in before for part in wanted[:-1])
