"""Raw data to the winds table: frames | states | winds, one path.

frames: raw Mode-S text -> messages -> states.parquet -> winds.parquet; states: a published states
table -> the same two;
winds: a published winds table -> winds.parquet. counts.json holds, for every level a row passes,
read = kept + dropped by reason, and the metrics: errors against the simulator's truth where there
is one, and false acceptance by negative controls. Files are worked on in time order, those that
overlap in time together, so memory is one file's, not the data set's; what a file needs of its
predecessor (addresses, the last minute of messages) is carried over. Units in the column names.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from tqdm import tqdm

from stages.errors import DataError
from stages.params import Decode
from stages.winds.decoding import control, readers, states, truth, winds
from stages.winds.modes import frames, messages

TRUTH = "truth.parquet"
ROW_GROUP = 1 << 18
CARRY_S = 60.0  # positions are judged against neighbours up to this old
# a longer silence between files ends a capture: addresses seen before it confirm nothing after it
CAPTURE_GAP_S = 3600.0


class Table:
    """A parquet file written part by part, each part sorted by `winds.ORDER` and starting where
    the one before ended."""

    def __init__(self, path: Path, columns: dict[Any, Any]):
        self.path, self.columns, self.end_s = path, columns, -np.inf
        self.schema = (
            pl.DataFrame(schema=columns).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        )
        self.writer = pq.ParquetWriter(path, self.schema, compression="zstd")

    def write(self, part: pl.DataFrame) -> None:
        """Append a part; DataError when its times go back behind the last part's."""
        if part.is_empty():
            return
        if part["ts_s"][0] < self.end_s:
            raise DataError(
                "files that should follow each other overlap in time",
                where=str(part["file"][0]),
                expected=f"times from {self.end_s} s on",
                found=f"{part['ts_s'][0]} s",
            )
        self.end_s = part["ts_s"][-1]
        for start in range(0, len(part), ROW_GROUP):
            rows = part.slice(start, ROW_GROUP).to_arrow(compat_level=pl.CompatLevel.oldest())
            self.writer.write_table(rows.cast(self.schema), row_group_size=ROW_GROUP)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *_) -> None:
        self.writer.close()


@dataclass
class Job:
    """One run: where the raw files are, which, where to write, and what was counted so far."""

    raw: Path
    names: list[str]
    folder: Path
    decode: Decode
    levels: dict[str, dict[Any, Any]] = field(
        default_factory=dict
    )  # in the order in which rows pass them
    metrics: dict[Any, Any] = field(default_factory=dict)

    def count(self, level: str, counts: dict[Any, Any]) -> None:
        """Add a part's counts to a level's."""
        self.levels[level] = merged(self.levels[level], counts)

    def table(self, name: str, columns: dict[Any, Any]) -> Table:
        return Table(self.folder / f"{name}.parquet", columns)


def merged(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
    """Sum of two nested dictionaries of numbers."""
    nested = {k for k, v in {**a, **b}.items() if isinstance(v, dict)}
    return {
        k: merged(a.get(k, {}), b.get(k, {})) if k in nested else a.get(k, 0) + b.get(k, 0)
        for k in {**a, **b}
    }


def transform(
    raw: Path, names: list[str], entry: str, decode: Decode, folder: Path
) -> dict[Any, Any]:
    """Decode the raw files `names` into `folder`; returns the counts: those of the first level,
    `levels` and `metrics`."""
    known = frames.is_capture if entry == "frames" else readers.is_table
    job = Job(raw, [name for name in names if known(name)], folder, decode)
    if not job.names:
        kinds = ", ".join(frames.SUFFIXES) + " (or one of these + .gz)"
        raise DataError(
            "the raw data hold no table",
            where=str(raw),
            expected=f"at least one {kinds if entry == 'frames' else '.csv'} file",
            found=", ".join(names) or "nothing",
            remedy="name such files under the data set's `files` in "
            "stages/params/datasets/winds.yaml",
        )
    job.levels = {level: {"read": 0, "kept": 0, "dropped": {}} for level in LEVELS[entry]}
    ENTRIES[entry](job)
    if entry != "winds":
        job.metrics["temperature"] = _temperature(folder / "states.parquet")
    first = job.levels[LEVELS[entry][0]]
    shown = {
        name: {**counts, "dropped": dict(sorted(counts["dropped"].items()))}
        for name, counts in job.levels.items()
    }
    for level, counts in job.levels.items():
        if counts["read"] != counts["kept"] + sum(counts["dropped"].values()):
            raise DataError(
                "rows are lost uncounted", where=f"{folder}, level {level}", found=str(counts)
            )
    return {name: first[name] for name in ("read", "kept", "dropped")} | {
        "levels": shown,
        "metrics": job.metrics,
    }


def from_winds(job: Job) -> None:
    """Published winds, span by span (`_together`)."""
    tables = {
        name: readers.read_winds(job.raw / name, number) for number, name in enumerate(job.names)
    }
    with job.table("winds", winds.COLUMNS) as table:
        spans = _together(job, "winds", tables)
        for span in tqdm(spans, desc="decode", unit="span", disable=None):
            table.write(_merged(tables, span))


def from_states(job: Job) -> None:
    """Published states to winds, span by span (`_together`)."""
    tables = {
        name: readers.read_states(job.raw / name, number) for number, name in enumerate(job.names)
    }
    with job.table("states", states.COLUMNS) as table, job.table("winds", winds.COLUMNS) as result:
        spans = _together(job, "states", tables)
        for span in tqdm(spans, desc="decode", unit="span", disable=None):
            kept = _merged(tables, span)
            part = kept.select(pl.col(n).cast(t) for n, t in states.COLUMNS.items())
            _write(job, part, table, result, roll_needed=False)


def _together(job: Job, level: str, tables: dict[str, pl.LazyFrame]) -> list[list[str]]:
    """Count the rows of each file at `level`; the files in time order, those that overlap in time
    in one span (one file an aircraft is a usual form). Memory is one span's."""
    ranges: list[Any] = []
    for name, rows in tables.items():
        begin, end = pl.col("ts_s").min().alias("begin"), pl.col("ts_s").max().alias("end")
        parts = _collect(rows.group_by("drop").agg(pl.len(), begin, end), name)
        dropped = dict(parts.drop_nulls("drop").sort("drop").select("drop", "len").iter_rows())
        kept = parts.filter(pl.col("drop").is_null())
        count = int(kept["len"].sum())
        job.count(level, {"read": count + sum(dropped.values()), "kept": count, "dropped": dropped})
        if count:
            ranges.append((kept["begin"][0], kept["end"][0], name))
    return _overlapping(ranges)


def _merged(tables: dict[str, pl.LazyFrame], span: list[str]) -> pl.DataFrame:
    """The kept rows of some files in order of time."""
    rows = [tables[name].filter(pl.col("drop").is_null()).drop("drop") for name in span]
    return _collect(pl.concat(rows).sort(winds.ORDER), ", ".join(span[:5]))


def from_frames(job: Job) -> None:
    """Raw frames to states to winds, span by span, with their metrics."""
    end_s: Any
    checks, falsely, carry, known, end_s = Counter(), Counter(), None, frozenset(), -np.inf
    has_truth = (job.raw / TRUTH).exists()
    with job.table("states", states.COLUMNS) as table, job.table("winds", winds.COLUMNS) as result:
        for span in tqdm(_spans(job), desc="decode", unit="span", disable=None):
            decoded: Any
            decoded, counts = _messages(job, span)
            if decoded.is_empty():
                job.count("frames", counts)
                continue
            if decoded["ts_s"][0] > end_s + CAPTURE_GAP_S:
                carry, known = None, frozenset()
            end_s = decoded["ts_s"].max()
            decoded, known = states.confirm(decoded, known)
            job.count("frames", merged(counts, _frame_counts(decoded)))
            whole = decoded if carry is None else pl.concat([carry, decoded])
            found = states.assemble(whole, job.decode)
            for level, numbers in found.levels.items():
                job.count(level, numbers)
            checks.update(_checks(found.registers))
            for name, numbers in control.run(whole, found.registers, job.decode).items():
                falsely.update({f"{name}.{key}": n for key, n in numbers.items()})
            true = truth.load(job.raw / TRUTH, decoded["ts_s"].min(), end_s) if has_truth else None
            if true is not None:
                falsely.update(
                    {
                        f"truth.{key}": n
                        for key, n in truth.false_accepted(found.registers, true).items()
                    }
                )
            _write(job, found.states.sort(winds.ORDER), table, result, roll_needed=True, true=true)
            carry = decoded.filter(pl.col("ts_s") >= end_s - CARRY_S).with_columns(
                carried=pl.lit(True)
            )
    _frame_metrics(job, checks, falsely, has_truth)


ENTRIES: dict[str, Callable[[Job], None]] = {
    "frames": from_frames,
    "states": from_states,
    "winds": from_winds,
}
# Measure of false acceptance: numerator, denominator, and the share's name. A swapped payload is
# held against those of its register.
SHARES = {
    "random_payload": ("accepted_{}", "frames", "share_{}"),
    "swapped_payload": ("accepted_{}", "payloads_{}", "share_of_payloads_{}"),
    "truth": ("false_{}", "accepted_{}", "share_{}"),
}
LEVELS = {
    "frames": ("frames", "positions", "registers", "states", "winds"),
    "states": ("states", "winds"),
    "winds": ("winds",),
}


def _spans(job: Job) -> list[list[str]]:
    """The files in time order; those that overlap in time share a span. Files without a frame go
    first, to be counted."""
    ranges: list[Any] = []
    for name in job.names:
        stamps = frames.read(job.raw / name).frames["ts_s"]
        ranges.append((stamps.min() or -np.inf, stamps.max() or -np.inf, name))
    return _overlapping(ranges)


def _overlapping(ranges: list[tuple[float, float, str]]) -> list[list[str]]:
    """Names by (begin, end, name), in order of time, those that overlap together."""
    spans: list[list[str]] = []
    end_s = -np.inf
    for start, end, name in sorted(ranges):
        if spans and start < end_s:
            spans[-1].append(name)
        else:
            spans.append([name])
        end_s = max(end_s, end)
    return spans


def _messages(job: Job, span: list[str]) -> tuple[pl.DataFrame, dict[Any, Any]]:
    """All frames of a span, decoded, in time order, and the counts of the lines that gave none."""
    readings = [frames.read(job.raw / name) for name in span]
    dropped = sum((Counter(reading.dropped) for reading in readings), Counter())
    rows = pl.concat([reading.frames for reading in readings]).sort(states.FILE_ORDER)
    unique = rows.unique(
        ["ts_s", "hex"], keep="first", maintain_order=True
    )  # two receivers may hear the same frame
    dropped["duplicate"] += len(rows) - len(unique)
    lines = sum(reading.read for reading in readings) - len(unique)
    counts = {
        "read": lines,
        "kept": 0,
        "dropped": {reason: n for reason, n in dropped.items() if n},
    }
    return pl.concat([unique, messages.decode(unique["hex"])], how="horizontal").with_columns(
        carried=pl.lit(False)
    ), counts


def _frame_counts(decoded: pl.DataFrame) -> dict[Any, Any]:
    """A frame is kept when its address and its format are good; whether its register can be used
    is the next level's matter."""
    unfound = pl.col("drop").str.starts_with("bds_").fill_null(False)
    return winds.split(decoded.select(drop=pl.when(~unfound).then(pl.col("drop"))))[1]


def _checks(registers: pl.DataFrame) -> Counter:
    """How many 5,0 and 6,0 could be held against the aircraft's state, and how many of those
    were contradicted by it."""
    result = Counter()
    against = pl.col("drop").str.contains("_contradicts_").fill_null(False)
    for register in ("20", "40", "50", "60"):
        here = registers.filter(pl.col("bds") == register)
        result[f"accepted_{register}"] += here["drop"].null_count()
        if register in ("50", "60"):
            result[f"checked_{register}"] += here.filter(pl.col("checked")).height
            result[f"contradicted_{register}"] += here.filter(pl.col("checked") & against).height
    return result


def _temperature(path: Path) -> dict[Any, Any]:
    """True airspeed of 5,0 minus that of 6,0 in the standard atmosphere, kn: what the real
    temperature does to the winds."""
    rows = pl.read_parquet(path, columns=["tas_kt", "ias_kt", "mach", "alt_ft"]).drop_nulls(
        "tas_kt"
    )
    gap = rows["tas_kt"].to_numpy() - winds.standard_tas_kt(rows)
    gap = gap[np.isfinite(gap)]
    low, middle, high = (
        (float(x) for x in np.percentile(gap, [5, 50, 95])) if len(gap) else (None, None, None)
    )
    return {
        "n": len(gap),
        "tas_excess_p05_kt": low,
        "tas_excess_median_kt": middle,
        "tas_excess_p95_kt": high,
    }


def share(part: int, whole: int) -> float | None:
    """part / whole, None (no number, but strict JSON) where there is nothing to divide."""
    return part / whole if whole else None


def _frame_metrics(job: Job, checks: Counter, falsely: Counter, has_truth: bool) -> None:
    """Totals over all spans as metrics: registers, false acceptance by three measures, yield,
    and errors against truth."""
    job.metrics["registers"] = dict(sorted(checks.items()))
    acceptance: dict[str, dict[Any, Any]] = {
        "state": {
            f"contradicted_share_{r}": share(checks[f"contradicted_{r}"], checks[f"checked_{r}"])
            for r in ("50", "60")
        }
    }
    for name, (part, whole, of) in SHARES.items():
        numbers = {key.split(".")[1]: n for key, n in falsely.items() if key.startswith(name + ".")}
        if numbers:
            acceptance[name] = numbers | {
                of.format(r): share(numbers[part.format(r)], numbers[whole.format(r)])
                for r in ("50", "60")
            }
    job.metrics["false_acceptance"] = acceptance
    job.metrics["winds_per_frame"] = share(
        job.levels["winds"]["kept"], job.levels["frames"]["read"]
    )
    job.metrics["winds_per_60"] = share(job.levels["winds"]["kept"], checks["accepted_60"])
    if has_truth:
        job.metrics["wind_error"] = truth.wind_errors(job.folder / "winds.parquet")


def _collect(rows: pl.LazyFrame, name: str) -> pl.DataFrame:
    try:
        return rows.collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise DataError(
            "a table cannot be read",
            where=name,
            expected="CSV with as many cells in each row as in its header",
            found=str(error),
        ) from None


def _write(
    job: Job,
    part: pl.DataFrame,
    table: Table,
    result: Table,
    roll_needed: bool,
    true: pl.DataFrame | None = None,
) -> None:
    """Write states, derive and write their winds, count them. A roll is needed of replies, not
    of published states."""
    table.write(part)
    derived, counts = winds.derive(part, job.decode, roll_needed)
    job.count("winds", counts)
    result.write(derived if true is None else truth.attach(derived, true))
