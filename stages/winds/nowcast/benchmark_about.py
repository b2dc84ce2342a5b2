"""What the frozen benchmark says of itself: its tables, its README, its Croissant 1.0 metadata."""

from pathlib import Path
from typing import Any

import polars as pl

from stages import files
from stages.splits import SPLITS

VERSION = "1.0.0"
# of this version's definition; a constant, so that the bytes know no clock
PUBLISHED = "2026-11-20"
LICENCE = "https://spdx.org/licenses/MIT"
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
TABLES: dict[str, Any] = {
    "rows.csv": (
        ROWS,
        "Winds measured by aircraft: what a forecaster may see, and what is to be forecast.",
    ),
    "truth.csv": (TRUTH, "The true wind at every row, known because the atmosphere is simulated."),
    "pairs.csv": (PAIRS, "Contexts and targets: each line is one forecast to make."),
}
# Words of Croissant's own vocabulary, each written as cr:WORD.
SAME = (
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
CONTEXT = {
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
    **{name: f"cr:{name}" for name in SAME},
}
KINDS = {".csv": "text/csv", ".py": "text/x-python", ".md": "text/markdown"}


def croissant(folder: Path, meta: dict[str, Any]) -> dict[str, Any]:
    """Croissant 1.0 metadata (JSON-LD) of the files in `folder`."""
    return {
        "@context": CONTEXT,
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
        "distribution": distribution(folder),
        "recordSet": [record_set(name, *about) for name, about in TABLES.items()],
    }


def distribution(folder: Path) -> list[dict[str, Any]]:
    """Each file as a cr:FileObject."""
    return [
        {
            "@type": "cr:FileObject",
            "@id": path.name,
            "name": path.name,
            "contentUrl": path.name,
            "contentSize": f"{path.stat().st_size} B",
            "encodingFormat": KINDS[path.suffix],
            "sha256": files.sha256(path),
        }
        for path in sorted(folder.iterdir())
    ]


def record_set(name: str, columns: dict[str, tuple[Any, ...]], meaning: str) -> dict[str, Any]:
    """A table as a cr:RecordSet."""
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
    return {
        "@type": "cr:RecordSet",
        "@id": stem,
        "name": stem,
        "description": meaning,
        "key": {"@id": key},
        "field": fields,
    }


def readme(meta: dict[str, Any], settings: dict[str, Any], index: pl.DataFrame) -> str:
    """What the folder holds, the task and its rules, and what is known of the sensors."""
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
{columns_told()}

{task(meta, index)}
{sensors(settings)}"""


def columns_told() -> str:
    """README's table of columns, a row each."""
    return "\n".join(
        f"| {column} | {name} | {about} |"
        for name, (columns, _) in TABLES.items()
        for column, (_, _, about) in columns.items()
    )


def task(meta: dict[str, Any], index: pl.DataFrame) -> str:
    """What is to be forecast, and by which rules."""
    counts = "\n".join(
        f"| {split} | {part.height} | {int((part['target_end'] - part['target_first']).sum())} |"
        for split in SPLITS
        for part in [index.filter(pl.col("split") == split)]
    )
    return f"""## The task
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
"""


def sensors(settings: dict[str, Any]) -> str:
    """What is known of the errors of measurement."""
    return f"""## The sensors
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
