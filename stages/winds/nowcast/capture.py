"""A recent capture, whatever form it has, as winds: our parquet or CSV, a published winds or states
table, or raw frames.

The form is found by looking, never by the name: parquet by its first bytes, tables by their header,
frames by the one parser of frames (modes/frames.py). Everything that is not yet winds passes
through the decode stage's own code, so a capture of today is treated like the training data; winds
that aircraft measured and reported (register 4,4) come beside those of their replies (reported.py).
Units are in the column names (declared.py); the wind blows towards (u east, v north). Values that
look like another unit's are warned of (doubtful.py).
"""

import gzip
import shutil
import tempfile
import warnings
import zlib
from pathlib import Path

import polars as pl

from stages.errors import DataError, InputError, TradewindError
from stages.params import Decode
from stages.winds import decode as decoding
from stages.winds.decoding import bounds, readers
from stages.winds.decoding.winds import split
from stages.winds.modes import frames
from stages.winds.nowcast import declared, doubtful, reported

HEAD, GZIP = 1 << 16, b"\x1f\x8b"
COLUMNS = ("ts_s", "lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s")
EXPECTED = (
    f"winds as parquet or CSV ({', '.join(COLUMNS)}, or alt_m, u_kn, v_kn, time), a published "
    "winds or states table, or frames with their times as CSV, JSON lines or AVR"
)


def form(path: Path) -> str:
    """'parquet', 'csv' (our columns), 'winds', 'states' (published) or 'frames'; InputError for
    anything else."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
        if head[:2] == GZIP:
            with gzip.open(path) as unpacked:
                head = unpacked.read(HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            "the capture cannot be read",
            where=str(path),
            found=getattr(error, "strerror", None) or str(error),
            remedy="name an existing file",
        ) from None
    if head[:4] == b"PAR1":
        return "parquet"
    lines = [line for line in head.splitlines() if line.strip()]
    names = (
        set(lines[0].decode("utf-8-sig", "replace").replace('"', "").split(",")) if lines else set()
    )
    if declared.known(names):
        return "csv"
    for kind, formats in (("winds", readers.WINDS), ("states", readers.STATES)):
        if any(set(known.columns) <= names for known in formats.values()):
            return kind
    if _holds_frames(path):
        return "frames"
    raise InputError(
        "the capture has none of the known forms",
        where=str(path),
        expected=EXPECTED,
        found=f"a file that begins {head[:60]!r}" if head else "an empty file",
    )


def _holds_frames(path: Path) -> bool:
    try:
        return frames.holds_frames(path)
    except DataError:  # no text
        return False


def winds(path: Path, decode: Decode) -> pl.DataFrame:
    """Usable winds of a capture, COLUMNS in order of time: finite, where an aircraft can be, within
    the wind limit, each row once. Errors name the file."""
    return read(path, decode)[0]


def read(path: Path, decode: Decode) -> tuple[pl.DataFrame, dict[str, int]]:
    """Usable winds of a capture, and how many rows (of raw captures: lines, replies, states) gave
    none for which reason."""
    kind = form(path)
    dropped: dict[str, int] = {}
    try:
        if kind in ("parquet", "csv"):
            lazy = pl.scan_parquet(path) if kind == "parquet" else pl.scan_csv(path)
            ways = declared.ours(lazy.collect_schema())
            missing = [name for name in COLUMNS if name not in ways]
            if missing:
                raise InputError(
                    "the capture lacks columns",
                    where=str(path),
                    expected=EXPECTED,
                    found=f"no {', '.join(missing)}",
                )
            rows = lazy.select(ways[name] for name in COLUMNS).collect(engine="streaming")
        else:
            rows, dropped = decoded(path, kind, decode)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            "the capture cannot be read",
            where=str(path),
            expected=EXPECTED,
            found=" ".join(str(error).split())[:200],
        ) from None
    for doubt in doubtful.doubts(rows):
        warnings.warn(f"{path}: {doubt}", UserWarning, stacklevel=2)
    kept, counts = usable(rows, decode)
    for name, count in counts.items():
        dropped[name] = dropped.get(name, 0) + count
    return kept, dropped


def usable(rows: pl.DataFrame, decode: Decode) -> tuple[pl.DataFrame, dict[str, int]]:
    """Of winds (COLUMNS) those that can be, in order of time, and how many are not, by reason."""
    speed = pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2
    reason = (
        pl.when(~pl.all_horizontal(pl.col(COLUMNS).is_finite().fill_null(False)))
        .then(pl.lit("null"))
        .when(bounds.outside())
        .then(pl.lit(bounds.REASON))
        .when(speed > decode.wind_max_m_s**2)
        .then(pl.lit("over_wind_max"))
        .when(~pl.struct(COLUMNS).is_first_distinct())
        .then(pl.lit("duplicate"))
    )
    kept, counts = split(rows.with_columns(drop=reason))
    return kept.sort("ts_s"), counts["dropped"]


def decoded(path: Path, kind: str, decode: Decode) -> tuple[pl.DataFrame, dict[str, int]]:
    """Winds of a raw capture, by the decode stage in a temporary folder, and its drops."""
    with tempfile.TemporaryDirectory(prefix="capture-") as name:
        raw, out = Path(name) / "raw", Path(name) / "decoded"
        raw.mkdir()
        out.mkdir()
        shutil.copyfile(path, raw / "capture.csv")
        try:
            counts = decoding.transform(raw, ["capture.csv"], kind, decode, out)
        except TradewindError as error:
            raise DataError(
                "the capture cannot be decoded", where=str(path), found=" ".join(str(error).split())
            ) from None
        dropped: dict[str, int] = {}
        for level in counts["levels"].values():
            for reason, count in level["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + count
        rows = pl.read_parquet(out / "winds.parquet", columns=list(COLUMNS)).select(COLUMNS)
        if kind == "frames":  # what aircraft measured stands beside what their replies give
            told, _ = reported.reports(raw / "capture.csv", decode)
            dropped["bds_other"] = dropped.get("bds_other", 0) - len(told)
            rows = pl.concat([rows, told.select(COLUMNS)])
        return rows, dropped
