"""The simulated set frozen as an open benchmark of aircraft-derived wind nowcasts.

`build` turns a prepared, simulated data set into a folder of plain text that needs nothing of this
project: measurements (rows.csv), the true wind beside them (truth.csv), who may see what to
forecast which rows (pairs.csv), a scorer that needs NumPy only (score.py), Croissant 1.0 metadata
(croissant.json), README.md and SHA256SUMS. Numbers are rounded and written in decimals, rows in
order of time, and nothing holds a clock or a host: same data, same bytes, on every machine.
Units: seconds (Unix), degrees, feet, m/s towards east (u) and north (v).
"""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from stages import files
from stages.errors import DataError, InputError
from stages.splits import SPLITS
from stages.winds.nowcast import scorer
from stages.winds.nowcast.benchmark_about import PAIRS, ROWS, TRUTH, croissant, readme
from stages.winds.pairs import Pairs


def build(root: Path, dataset: str, out: Path) -> str:
    """Freeze `root`/prepared/`dataset` into the new folder `out`; the simulator's settings are in
    the metadata of its truth.

    Returns a line that says what was written. InputError if `out` holds anything; DataError if the
    set has no truth.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            "the benchmark wants a folder of its own",
            where=str(out),
            expected="a new or empty folder",
            remedy="name another folder",
        )
    prepared = root / "prepared" / dataset
    pairs = Pairs.open(prepared)
    if not pairs.meta["truth"]:
        raise DataError(
            "a benchmark needs the true wind",
            where=str(prepared),
            expected="a simulated data set",
            found="no truth columns",
        )
    settings = json.loads(
        pq.read_schema(root / "raw" / dataset / "truth.parquet").metadata[b"simulate"]
    )
    with files.atomic_folder(out) as folder:
        rows = pl.read_parquet(prepared / "rows.parquet").with_row_index("row")
        missing = rows.select(
            pl.any_horizontal(pl.col(list(TRUTH)).is_null() | pl.col(list(TRUTH)).is_nan()).sum()
        ).item()
        if missing:
            raise DataError(
                "rows without a true wind",
                where=str(prepared / "rows.parquet"),
                expected="none",
                found=str(missing),
            )
        write(rows, ROWS, folder / "rows.csv")
        write(rows, TRUTH, folder / "truth.csv")
        index = table(pairs)
        write(index, PAIRS, folder / "pairs.csv")
        shutil.copyfile(scorer.__file__, folder / "score.py")
        text(folder / "README.md", readme(pairs.meta, settings, index))
        files.write_json(folder / "croissant.json", croissant(folder, pairs.meta))
        sums = "".join(f"{files.sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
        text(folder / "SHA256SUMS", sums)
    digest = files.sha256(out / "SHA256SUMS")
    return (
        f"{out}: {len(rows)} rows, {len(index)} forecasts to make; SHA-256 of SHA256SUMS {digest}"
    )


def write(rows: pl.DataFrame, columns: dict[str, tuple[Any, ...]], path: Path) -> None:
    """Some columns as CSV: a header, LF line ends, shortest decimals of the rounded value."""

    def rounded(name: str, places: int | None) -> pl.Expr:
        return (
            pl.col(name) if places is None else pl.col(name).cast(pl.Float64).round(places) + 0.0
        )  # + 0.0: no negative zeros

    rows.select(rounded(name, places) for name, (places, _, _) in columns.items()).write_csv(
        path, line_terminator="\n"
    )


def text(path: Path, content: str) -> None:
    """A UTF-8 file with LF line ends."""
    path.write_bytes(content.encode("utf-8"))


def table(pairs: Pairs) -> pl.DataFrame:
    """One line for each pair of a split: its slice, and the half-open row intervals of context
    and target."""
    lines = []
    for split in SPLITS:
        for number in pairs.targets(split):
            pair = pairs.pair(number, "slice")
            context, target = pair.context_rows, pair.target_rows
            lines.append(
                (
                    split,
                    number,
                    int(context[0]),
                    int(context[-1]) + 1,
                    int(target[0]),
                    int(target[-1]) + 1,
                )
            )
    return pl.DataFrame(lines, schema=list(PAIRS), orient="row")
