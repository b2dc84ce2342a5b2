"""A line of a receiver's file -> its time and its frame, whatever form the file has.

Known forms, told by what most of the first lines look like:
  columns in any order, parted by commas, semicolons, tabs or blanks, with or without quotes (and
  separators inside quotes), with a decimal comma where semicolons or tabs part;
  the time as Unix seconds (or milliseconds, microseconds, nanoseconds, where most lines have them),
  as one ISO 8601 moment, or as a column of dates and one of times of day (UTC unless an offset is
  named);
  frames bare, or as AVR writes them: `*hex;` and `@` + twelve digits of a counter + `hex;`;
  JSON lines, an object each, as rs1090 (`timestamp`, `frame`) and traffic (`timestamp`, `rawmsg`)
  write them, or with our own `ts_s` or `ts_ms`.
An AVR line without a time of its own gives none: its counter runs from the receiver's start. Nor
does an object without any key of a time.
Every line that gives no frame has a reason. Times are Unix seconds.
"""

import json
import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

SAMPLE_LINES = 2000  # on which the form is found
TIME_RANGE_S = (
    631_152_000.0,
    4_102_444_800.0,
)  # 1990 to 2100: neither milliseconds nor seconds since start-up
DAY_S = 86_400.0
AVR = r"(?:\*|@[0-9A-Fa-f]{12})"
HEX = r"(?:[0-9A-Fa-f]{28}|[0-9A-Fa-f]{14})"
FRAME = f"^{AVR}?{HEX}$"
# a date with its year first, or its day first where dots part it
DAY = r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4})"
CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:\.\d+)?"
ZONE = r"(?:Z|UTC|[+-]\d{2}:?\d{2})?"
# a stamp or a time of day with a decimal comma
COMMA = rf'(?:^|[;\tT ])\s*"?(?:\d{{9,10}}|\d{{1,2}}:\d{{2}}:\d{{2}}),\d+{ZONE}"?\s*(?:[;\t]|$)'
QUOTED_SEPARATOR = r'(?:^|[,;\t])\s*"[^"]*[,;\t][^"]*"\s*(?:[,;\t]|$)'
# Tried in this order; the first that holds what is looked for is taken.
TIME_KEYS = ("timestamp", "ts", "time", "mintime", "ts_s")
TIME_MS_KEY = "ts_ms"  # a number of milliseconds
# Other units of Unix time: how many make a second -> how many digits the years of TIME_RANGE_S have
# before the point. No frame has as many.
FRACTIONS = {1_000: "12,13", 1_000_000: "15,16", 1_000_000_000: "18,19"}
FRAME_KEYS = ("frame", "rawmsg", "msg", "raw", "message", "hex")
SCHEMA = {"record": pl.UInt32, "ts_s": pl.Float64, "hex": pl.String, "reason": pl.String}


@dataclass(frozen=True)
class Layout:
    """The form of a file: columns of stamp, frame and time of day (where `stamp` holds the date
    alone), how the stamp is written and what parts the columns."""

    stamp: int = 0
    frame: int = 1
    clock: int | None = None
    moment: bool = False  # `stamp` is ISO 8601, no number
    objects: bool = False  # JSON lines
    blanks: bool = False  # blanks part the columns
    decimal_comma: bool = False
    fraction: int = 1  # how many of the stamps' unit make a second


def has_frames(lines: pl.Series) -> bool:
    """Whether some of the first lines hold a frame with a time or without."""
    head = lines.head(SAMPLE_LINES)
    reasons = parsed(head, layout(head), 1)["reason"]
    return bool(reasons.is_null().any() or reasons.is_in(["bad_time", "no_time"]).any())


def layout(lines: pl.Series) -> Layout:
    """The form that most of the first lines have; stamps first and frames second where none holds
    a frame."""
    head = lines.head(SAMPLE_LINES)
    head = head.filter(head.str.strip_chars() != "")
    found = _layout(head, 1)
    fraction = _fraction(head, found)
    return found if fraction == 1 else _layout(head, fraction)


def _fraction(head: pl.Series, form: Layout) -> int:
    """How many of the unit make a second that a number fits in most of the lines that hold a frame
    and no time; 1 where there is none, or most have a time."""
    reasons = parsed(head, form, 1)["reason"]
    bad = head.filter(reasons == "bad_time")
    for fraction, digits in FRACTIONS.items():
        number = rf"(?:^|[^\w.])\d{{{digits}}}(?:\.\d*)?(?:[^\w.]|$)"
        if 2 * bad.str.contains(number).sum() > len(bad) + reasons.null_count():
            return fraction
    return 1


def _layout(head: pl.Series, fraction: int) -> Layout:
    """The form of lines whose stamps have that unit."""
    comma = bool((head.str.contains(COMMA) & _few(head)).any())
    plain = Layout(decimal_comma=comma, fraction=fraction)
    votes = _votes(_cells(head, plain), fraction)
    known = votes["frame"].max() if len(votes) else 0
    objects = (head.str.contains(r"^\s*\[?\s*\{") & head.str.contains(f'"{AVR}?{HEX};?"')).sum()
    if objects > (known or 0):
        return Layout(objects=True, fraction=fraction)
    apart = head.str.contains(r"^[^,;\t]* [^,;\t]*;?\s*$") & head.str.contains(
        rf"(?:^|\s){AVR}?{HEX};?(?:\s|$)"
    )
    if apart.sum() > (known or 0):
        plain = Layout(blanks=True, fraction=fraction)
        votes = _votes(_cells(head, plain), fraction)
    return _columns(votes, plain)


def _few(lines: pl.Series) -> pl.Series:
    """Lines whose commas all stand inside numbers, as decimal marks."""
    return lines.str.contains("[;\t]") & ~lines.str.replace_all(r"\d,\d", "").str.contains(",")


def _cells(lines: pl.Series, form: Layout) -> pl.Series:
    """Lines to lists of cells, without quotes and the blanks around and inside them."""
    if form.decimal_comma:
        lines = lines.str.replace_all(",", ".", literal=True)
    inside = lines.str.contains(QUOTED_SEPARATOR)
    if inside.any():
        mended = [
            re.sub(r'"[^"]*"', _without_separators, line) if hit else line
            for line, hit in zip(lines, inside, strict=True)
        ]
        lines = pl.Series("line", mended, dtype=pl.String)
    if form.blanks:
        lines = lines.str.strip_chars().str.replace_all(r"\s+", ",")
    return lines.str.replace_all("[;\t]", ",").str.replace_all("[\"' \r]", "").str.split(",")


def _without_separators(quoted: re.Match[str]) -> str:
    return re.sub(r"[,;\t]", " ", quoted[0])


def _votes(cells: pl.Series, fraction: int) -> pl.DataFrame:
    """How many cells of each column look like what is looked for."""
    table = (
        pl.DataFrame({"cell": cells}, schema={"cell": pl.List(pl.String)})
        .with_row_index("line")
        .explode("cell", empty_as_null=True)
        .with_columns(column=pl.int_range(pl.len()).over("line"))
    )
    cell, number = pl.col("cell"), pl.col("cell").cast(pl.Float64, strict=False)
    stamp = (number / fraction).is_between(*TIME_RANGE_S).fill_null(False)
    return (
        table.group_by("column")
        .agg(
            frame=(cell.str.contains(FRAME) & ~stamp).sum(),
            stamp=stamp.sum(),
            moment=cell.str.contains(f"^{DAY}T?{CLOCK}{ZONE}$").sum(),
            day=cell.str.contains(f"^{DAY}$").sum(),
            clock=cell.str.contains(f"^{CLOCK}{ZONE}$").sum(),
        )
        .sort("column")
    )


def _columns(votes: pl.DataFrame, form: Layout) -> Layout:
    """The layout whose columns have the most votes, of equals the first."""

    def most(name: str) -> tuple[int, int]:
        best = others.sort([name, "column"], descending=[True, False])
        return int(best[name][0] or 0), int(best["column"][0])

    frame = votes.sort(["frame", "column"], descending=[True, False])
    if not len(frame) or not frame["frame"][0]:
        return Layout(decimal_comma=form.decimal_comma, fraction=form.fraction)
    column = int(frame["column"][0])
    others = votes.filter(pl.col("column") != column)
    form = replace(form, frame=column)
    if not len(others):
        return replace(form, stamp=column + 1)
    (number, stamp), (whole, moment), (days, day), (times, clock) = map(
        most, ("stamp", "moment", "day", "clock")
    )
    if min(days, times) > max(number, whole):
        return replace(form, stamp=day, clock=clock)
    if whole > number:
        return replace(form, stamp=moment, moment=True)
    return replace(form, stamp=stamp)


def parsed(lines: pl.Series, form: Layout, record: int) -> pl.DataFrame:
    """One row a line, SCHEMA: `record` counts from the first line's; ts_s where the line has a
    number for one, `hex` (upper case) where it has hexadecimal digits for a frame, `reason` why it
    gives none (null: it gives one)."""
    table = _objects(lines, form.fraction) if form.objects else _table(lines, form)
    table = table.with_row_index("record", offset=record).with_columns(
        pl.col("record").cast(pl.UInt32),
        ts_s=pl.when(pl.col("ts_s").is_finite()).then(pl.col("ts_s")),
        digits=pl.col("text").str.contains("^[0-9A-F]+$").fill_null(False),
    )
    text, digits = pl.col("text"), pl.col("digits")
    named = text.str.contains("^[A-Z_][A-Z0-9_]*$") & ~digits & pl.col("ts_s").is_null()
    reason = (
        pl.when("blank")
        .then(pl.lit("blank"))
        .when((pl.col("record") == 0) & named & (not form.objects))
        .then(pl.lit("header"))
        .when("unsound")
        .then(pl.lit("not_json"))
        .when(~digits)
        .then(pl.lit("not_hex"))
        .when(~text.str.len_bytes().is_in([14, 28]))
        .then(pl.lit("wrong_length"))
        .when("timeless")
        .then(pl.lit("no_time"))
        .when(~pl.col("ts_s").is_between(*TIME_RANGE_S).fill_null(False))
        .then(pl.lit("bad_time"))
    )
    return table.with_columns(reason=reason, hex=pl.when("digits").then("text")).select(
        pl.col(name).cast(dtype) for name, dtype in SCHEMA.items()
    )


def _table(lines: pl.Series, form: Layout) -> pl.DataFrame:
    """ts_s, text (what stands where frames do) and what is amiss, of lines in columns."""
    cells = pl.DataFrame({"cell": _cells(lines, form), "line": lines})

    def at(column: int) -> pl.Expr:
        return pl.col("cell").list.get(column, null_on_oob=True)

    if form.clock is not None:
        stamp = _day_s(at(form.stamp)) + _clock_s(at(form.clock))
    elif form.moment:
        day = at(form.stamp).str.extract(f"^({DAY})", 1)
        stamp = _day_s(day) + _clock_s(at(form.stamp).str.extract(f"T?({CLOCK}{ZONE})$", 1))
    else:
        stamp = at(form.stamp).cast(pl.Float64, strict=False) / form.fraction
    return cells.select(
        ts_s=stamp,
        text=at(form.frame).str.replace(f"^{AVR}", "").str.to_uppercase(),
        blank=pl.col("cell").list.join("") == "",
        unsound=pl.lit(False),
        timeless=pl.col("line").str.contains(rf"^\s*{AVR}[0-9A-Fa-f]+;?\s*$"),
    )


def _day_s(text: pl.Expr) -> pl.Expr:
    """Unix seconds at which a date begins; null for what is none."""
    day = text.str.replace(r"^(\d{1,2})\.(\d{1,2})\.(\d{4})$", "$3-$2-$1")
    day = day.str.replace_all("[/.]", "-").str.to_date("%Y-%m-%d", strict=False)
    return day.cast(pl.Int32).cast(pl.Float64) * DAY_S


def _clock_s(text: pl.Expr) -> pl.Expr:
    """Seconds since UTC's midnight of a time of day and its offset; null for what is none."""
    hour, minute, second = (
        text.str.extract(r"^(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)", part).cast(pl.Float64)
        for part in (1, 2, 3)
    )
    sign = pl.when(text.str.contains(r"-\d{2}:?\d{2}$")).then(-1.0).otherwise(1.0)
    offset = [
        text.str.extract(r"[+-](\d{2}):?(\d{2})$", part).cast(pl.Float64).fill_null(0.0)
        for part in (1, 2)
    ]
    sound = (hour < 24) & (minute < 60) & (second < 61)
    local = hour * 3600 + minute * 60 + second
    return pl.when(sound).then(local - sign * (offset[0] * 3600 + offset[1] * 60))


def _objects(lines: pl.Series, fraction: int) -> pl.DataFrame:
    """ts_s, text and what is amiss, of JSON lines."""
    rows: list[tuple[float | None, str | None, bool, bool, bool]] = []
    for line in lines:
        text = line.strip().removeprefix("[").removesuffix("]").strip().removesuffix(",")
        if not text:
            rows.append((None, None, True, False, False))
            continue
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            rows.append((None, None, False, True, False))
            continue
        stamp = _stamp(told, fraction)
        frame = next(filter(_is, (_digits(told.get(key)) for key in FRAME_KEYS)), None)
        timeless = all(told.get(key) is None for key in (*TIME_KEYS, TIME_MS_KEY))
        rows.append((stamp, frame, False, False, timeless))
    schema = {"ts_s": pl.Float64, "text": pl.String} | dict.fromkeys(
        ("blank", "unsound", "timeless"), pl.Boolean
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


def _stamp(told: dict[str, Any], fraction: int) -> float | None:
    """Unix seconds of the first key that holds a time; None where none does."""
    stamp = next(filter(_is, (_moment(told.get(key)) for key in TIME_KEYS)), None)
    if stamp is not None and stamp > TIME_RANGE_S[1]:
        return stamp / fraction
    milliseconds = None if stamp is not None else _moment(told.get(TIME_MS_KEY))
    return stamp if milliseconds is None else milliseconds / 1e3


def _is(value: Any) -> bool:
    return value is not None


def _moment(value: Any) -> float | None:
    """Unix seconds of a number, a numeral or an ISO 8601 text; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        try:
            when = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return None
        number = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return number if math.isfinite(number) else None


def _digits(value: Any) -> str | None:
    """The hexadecimal digits of a text, upper case; None for anything else."""
    if not isinstance(value, str):
        return None
    bare = re.fullmatch(rf"\s*{AVR}?([0-9A-Fa-f]+);?\s*", value)
    return bare[1].upper() if bare else None
