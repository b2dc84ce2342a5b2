"""What the thesis says in its text and a talk's slides print, number by number, and ours beside it.

The numbers are transcribed in data/published (thesis_text.csv, slides_wind.csv); words.csv has a
row for each: which one (table, dataset, model, variant, metric), ours (parted by '; ': a number as
the audit names it, EXPERIMENT/PROFILE/DATASET/CELL/NAME, or a file below reports/; empty where
there is none), why (what differs, or why there is none). Our values are read, none is typed.
"""

from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.tables import parts
from stages.tables.table import digits

WORDS = Path(__file__).with_name("words.csv")
PRINTED = tuple(Path("data/published") / name for name in ("thesis_text.csv", "slides_wind.csv"))
KEY = ("table", "dataset", "model", "variant", "metric")
PLAIN = ("", "1", "none")  # units that are not told


def with_unit(value: float, unit: str | None) -> str:
    """'9.54 kn'; a number without a unit alone."""
    return digits(value) if (unit or "") in PLAIN else f"{digits(value)} {unit}"


def number(address: str) -> str | None:
    """The value of a number of ours with its unit; None where it is not here."""
    experiment, profile, dataset, cell, *name = address.split("/")
    home = Path("reports", experiment, profile)
    cells = parts.in_git(home)["cells"] if (home / parts.METRICS).exists() else {}
    found: Any = cells.get(f"{dataset}/{cell}")
    for part in ("metrics", *name) if len(name) == 1 else name:
        found = found.get(part) if isinstance(found, dict) else None
    if not isinstance(found, dict) or "value" not in found:
        return None
    return with_unit(found["value"], found.get("unit"))


def numbers(path: Path = WORDS) -> list[dict[str, Any]]:
    """The rows in the order of the transcriptions: words.csv's, `printed` with its unit, `note`,
    and `values` [(name, its value; None of a file, and of what is not here)]. [] where nothing is
    transcribed; DataError for a transcribed number without a row, or with two."""
    mine = pl.read_csv(path, infer_schema_length=0).fill_null("")
    rows = {tuple(row[name] for name in KEY): row for row in mine.iter_rows(named=True)}
    printed = [
        row
        for file in PRINTED
        if file.exists()
        for row in pl.read_csv(file, infer_schema_length=0).fill_null("").iter_rows(named=True)
    ]
    keys = [tuple(row[name] for name in KEY) for row in printed]
    if printed and (len(rows) != len(mine) or sorted(rows) != sorted(keys)):
        raise DataError(
            "words.csv and the transcriptions name other numbers",
            where=str(path),
            found=", ".join(map(str, sorted(set(rows) ^ set(keys)))) or "a row twice",
            expected="a row for each of them",
        )
    return [
        rows[key]
        | {
            "printed": with_unit(float(one["mean"]), one["unit"]),
            "note": one["note"],
            "values": [
                (name, None if Path(name).suffix else number(name))
                for name in rows[key]["ours"].split("; ")
                if name
            ],
        }
        for key, one in zip(keys, printed, strict=True)
    ]
