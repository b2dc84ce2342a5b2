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
from stages.winds.nowcast import scorer
from stages.winds.pairs import Pairs

VERSION = "1.0.0"
PUBLISHED = (
    "2026-11-20"  # of this version's definition; a constant, so that the bytes know no clock
)
LICENCE = "https://spdx.org/licenses/MIT"
SPLITS = ("train", "val", "test")
# column: (decimals, Croissant type, meaning)
ROWS = {
    "row": (None, "sc:Integer", "number of the row, from 0, in order of time"),
    "t_s": (3, "sc:Float", "moment of the measurement, Unix seconds"),
    "lat_deg": (6, "sc:Float", "latitude, degrees north"),
    "lon_deg": (6, "sc:Float", "longitude, degrees east"),
    "alt_ft": (1, "sc:Float", "pressure altitude, feet"),
    "u_m_s": (4, "sc:Float", "measured wind towards east, m/s"),
    "v_m_s": (4, "sc:Float", "measured wind towards north, m/s"),
    "flight": (None, "sc:Integer", "number of the flight the row belongs to"),
}
TRUTH = {
    "row": (None, "sc:Integer", "row of rows.csv"),
    "u_true_m_s": (4, "sc:Float", "true wind towards east, m/s"),
    "v_true_m_s": (4, "sc:Float", "true wind towards north, m/s"),
}
PAIRS = {
    "split": (None, "sc:Text", "train, val or test"),
    "slice": (None, "sc:Integer", "number of the target minute"),
    "context_first": (None, "sc:Integer", "first row of the context minute"),
    "context_end": (None, "sc:Integer", "row after the last of the context minute"),
    "target_first": (None, "sc:Integer", "first row to forecast"),
    "target_end": (None, "sc:Integer", "row after the last to forecast"),
}
TABLES = {
    "rows.csv": (
        ROWS,
        "Winds measured by aircraft: what a forecaster may see, and what is to be forecast.",
    ),
    "truth.csv": (TRUTH, "The true wind at every row, known because the atmosphere is simulated."),
    "pairs.csv": (PAIRS, "Contexts and targets: each line is one forecast to make."),
}


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


def write(rows: pl.DataFrame, columns: dict[str, tuple], path: Path) -> None:
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


def croissant(folder: Path, meta: dict[str, Any]) -> dict[str, Any]:
    """Croissant 1.0 metadata (JSON-LD) of the files in `folder`."""
    kinds = {".csv": "text/csv", ".py": "text/x-python", ".md": "text/markdown"}
    same = (
        "column",
        "extract",
        "field",
        "fileObject",
        "fileProperty",
        "fileSet",
        "format",
        "includes",
        "isLiveDataset",
        "jsonPath",
        "key",
        "md5",
        "parentField",
        "path",
        "recordSet",
        "references",
        "regex",
        "repeated",
        "replace",
        "separator",
        "source",
        "subField",
        "transform",
        "citeAs",
        "equivalentProperty",
        "samplingRate",
    )
    context = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        "data": {"@id": "cr:data", "@type": "@json"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        **{name: f"cr:{name}" for name in same},
    }
    distribution = [
        {
            "@type": "cr:FileObject",
            "@id": path.name,
            "name": path.name,
            "contentUrl": path.name,
            "contentSize": f"{path.stat().st_size} B",
            "encodingFormat": kinds[path.suffix],
            "sha256": files.sha256(path),
        }
        for path in sorted(folder.iterdir())
    ]
    sets = []
    for name, (columns, meaning) in TABLES.items():
        stem = name.removesuffix(".csv")
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{stem}/{column}",
                "name": column,
                "description": about,
                "dataType": kind,
                "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
                **(
                    {"references": {"field": {"@id": "rows/row"}}}
                    if name == "truth.csv" and column == "row"
                    else {}
                ),
            }
            for column, (_, kind, about) in columns.items()
        ]
        key = {"pairs.csv": "pairs/slice"}.get(name, f"{stem}/row")
        sets.append(
            {
                "@type": "cr:RecordSet",
                "@id": stem,
                "name": stem,
                "description": meaning,
                "key": {"@id": key},
                "field": fields,
            }
        )
    return {
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "tradewind-simulated-winds",
        "description": "Winds derived from simulated Mode-S surveillance of aircraft, with the "
        f"true wind, fixed splits and a scorer: {meta['kept']} measurements, forecasts "
        f"{meta['lead_s']:g} s ahead.",
        "version": VERSION,
        "datePublished": PUBLISHED,
        "license": LICENCE,
        "url": "urn:sha256:"
        + files.sha256(folder / "rows.csv"),  # it has no home of its own: its content is its name
        "creator": {"@type": "sc:Organization", "name": "Tradewind"},
        "isLiveDataset": False,
        "citeAs": f"Tradewind simulated aircraft-wind benchmark, version {VERSION}",
        "keywords": ["wind", "nowcasting", "Mode-S", "aircraft", "simulated"],
        "distribution": distribution,
        "recordSet": sets,
    }


def readme(meta: dict[str, Any], settings: dict[str, Any], index: pl.DataFrame) -> str:
    """What the folder holds, the task and its rules, and what is known of the sensors."""
    counts = "\n".join(
        f"| {split} | {part.height} | {int((part['target_end'] - part['target_first']).sum())} |"
        for split in SPLITS
        for part in [index.filter(pl.col("split") == split)]
    )
    return f"""# Tradewind: simulated aircraft-wind benchmark {VERSION}

{meta["kept"]} winds, each derived from the Mode-S frames of a simulated aircraft over \
{settings["hours"]:g} hours
({settings["extent_km"][0]:g} km east-west by {settings["extent_km"][1]:g} km north-south, \
{settings["altitude_m"][0]:g} to \
{settings["altitude_m"][1]:g} m), with the true wind beside each.
The atmosphere is simulated: a jet, shear and drifting eddies, without horizontal divergence. The \
winds went through
register quantisation, frame loss and bit errors, and a decoder.

| file | content |
| --- | --- |
{chr(10).join(f"| {name} | {meaning} |" for name, (_, meaning) in TABLES.items())}
| score.py | the scorer: `python score.py predictions.csv --split test` (needs NumPy only) |
| croissant.json | metadata, Croissant 1.0 |
| SHA256SUMS | check with `sha256sum -c SHA256SUMS` |

| column | file | meaning |
| --- | --- | --- |
{chr(10).join(f"| {column} | {name} | {about} |" for name, (columns, _) in TABLES.items() for column, (_, _, about) in columns.items())}

## The task
For each line of pairs.csv forecast the wind at rows target_first to target_end - 1 of rows.csv, \
from their place and altitude.
The context minute, rows context_first to context_end - 1, lies {meta["lead_s"]:g} s before the \
target minute.

| split | forecasts | rows to forecast |
| --- | --- | --- |
{counts}

Rules: a forecast may use the measurements of rows before its own context_end, and whatever was \
learned from the target and
context rows of `train`; `val` is for choosing, `test` for the one final score. truth.csv is for \
scoring only.
Say whether a model uses the context minute alone or more of the past.

predictions.csv: a header and the columns `row,u_m_s,v_m_s`, and `u_sd_m_s,v_sd_m_s` for forecasts \
with a spread; one line a row.
Errors are given against measurement and truth, per component and as a vector, in m/s and knots, \
with 90 % intervals over time slices.

## The sensors
Normal, without bias, new every {settings["update_s"]:g} s: heading \
{settings["heading_noise_deg"]:g} degrees, true airspeed \
{settings["airspeed_noise_kt"]:g} kt. Then the registers' steps
(heading and track 90/512 degrees, ground speed and airspeed 1 or 2 kt, Mach 0.004). \
{settings["dropout"]:.1%} of the frames are
lost in fades, {settings["bit_error"]:.1%} are damaged.
score.py prints what is left of this in the winds as noise_floor_component_m_s: a perfect forecast \
is that far from them.

Seed {settings["seed"]}, start {settings["start"]}. Licence: MIT.
"""
