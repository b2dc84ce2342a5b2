"""The documents' printed numbers of fields: errors by model, and by distance from the context.

† marks a printed number that is misprinted, ‡ one about which the document leaves something open.
"""

import polars as pl

from stages.tables.published import Printed, listed, named, read
from stages.tables.table import NONE, digits

DOCUMENTS = {
    "poisson": "poisson",
    "navier_stokes": "navier_stokes",
    "darcy": "darcy",
    "weather": "era5_two_day",
}  # ours by its prefix: as printed
# of a problem by the documents' name: why its printed level is not that of ours
LEVELS = {
    "darcy": "the document does not state the unit of its solutions, and ours are in that of the "
    "data: compare the order of the models and the share of the mean's error, not the level"
}
Companions = dict[tuple[str, str], dict[str, Printed]]


def document(dataset: str) -> str:
    """The documents' name of a data set's problem, '' where they have none: 'poisson_rooms' ->
    'poisson'."""
    return next((name for prefix, name in DOCUMENTS.items() if dataset.startswith(prefix)), "")


def mark(printed: Printed) -> str:
    """† of a misprint, ‡ of what the document leaves open, nothing where nothing is to be said."""
    return (
        ""
        if not printed.note
        else "†"
        if any(word in printed.note for word in ("prints", "printed", "TRAINING"))
        else "‡"
    )


def theirs(printed: Printed | None) -> str:
    """'0.00700 ± 0.0004† (thesis C.2)'."""
    if printed is None:
        return NONE
    spread = f" ± {printed.std:.2g}" if printed.std is not None else ""
    return f"{digits(printed.mean)}{spread}{mark(printed)} ({printed.table})"


def notes(rows: list[Printed]) -> str:
    """What † and ‡ mean under a table of these printed numbers, each note once; '' without any."""
    found = dict.fromkeys((mark(row), row.table, row.note) for row in rows if row.note)
    return "; ".join(f"{sign} {table}: {note}" for sign, table, note in found)


def levels(rows: list[Printed], dataset: str) -> str:
    """The notes on these numbers beside errors on a data set of ours; first why their level is
    another, where it is."""
    why = LEVELS.get(document(dataset), "") if rows else ""
    return "; ".join(filter(None, (f"Printed levels: {why}" if why else "", notes(rows))))


SET_METRICS = ("mse", "rmse", "error_ratio", "error")


def sets(experiment: str) -> dict[tuple[str, str], dict[str, Printed]]:
    """For each (data set as printed, arm) of an experiment on sets of points: metric -> the printed
    number; the first table that prints one counts.

    Metrics: mse, rmse (problem's units), error_ratio (%), error (not named); of training sets with
    `_train`. DataError for a row that finds none, or that stands twice.
    """
    printed, found = read().filter(pl.col("metric").is_in(SET_METRICS)), {}
    for row in listed(experiment, ("arm", "table")):
        for r in named(printed, row, ("variant", "size"), experiment).iter_rows(named=True):
            scale = 1e-4 if r["unit"] == "1e-4" else 1.0
            spread = None if r["std"] is None else scale * r["std"]
            one = Printed(r["table"], r["dataset"], scale * r["mean"], spread, r["note"] or "")
            found.setdefault((r["dataset"], row["arm"]), {}).setdefault(
                r["metric"] + ("_train" if r["split"] == "train" else ""), one
            )
    return found


def tightness() -> dict[str, dict[str, Printed]]:
    """Thesis table C.7, of winds (kn by its magnitude): model -> bin of distance ('0.5-1',
    '2.5-inf') -> the printed error."""
    found: dict[str, dict[str, Printed]] = {}
    for r in read().filter(pl.col("table") == "thesis C.7").iter_rows(named=True):
        low, high = r["variant"].removeprefix("dist=").split("-")
        name = f"{float(low):g}-{float('inf') if high == 'end' else float(high):g}"
        found.setdefault(r["model"], {})[name] = Printed(
            r["table"], r["dataset"], r["mean"], r["std"], r["note"] or ""
        )
    return found
