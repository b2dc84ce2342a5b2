"""What `import tradewind` offers: a trained model asked from Python, frames decoded, a model of
fields or of sequences fitted to one's own data.

Tables are Polars or pandas frames, grids xarray datasets; the answer has the kind of the question.
Wind vectors are u east and v north, blowing towards, m/s; places are degrees north and east and
feet of pressure altitude; times are Unix seconds, UTC.
"""

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from stages import columns as read
from stages import files, params
from stages.errors import DataError, InputError, TradewindError
from stages.fields import fitted as fields
from stages.sequences import fitted as sequences
from stages.training import asked
from stages.winds.modes.frames import holds_frames
from stages.winds.nowcast import (
    answers,
    anywhere,
    capture,
    doubtful,
    handed,
    named,
    nowcast,
    points,
    refusals,
    reported,
)

__all__ = ["Nowcaster", "decode", "fit", "load"]
FRAMES = ("ts_s", "frame")
FRAMED = "the frames"  # what errors call a table or pairs of them
WIND = ("u_m_s", "v_m_s", "u_spread_m_s", "v_spread_m_s", "nearest_km")


class Nowcaster:
    """A trained cell of the winds, on the CPU.

    folder: where its weights lie; lead_s: seconds from the end of its context to the slice that
    it answers; area: lowest and highest lat_deg, lon_deg and alt_ft that it knows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model, meta = nowcast.load(folder)
        self._name, self._prepared = str(meta["model"]), meta["prepared"]
        self.lead_s: float = self._prepared["lead_s"]
        self.area: dict[str, list[float]] = self._prepared["area"]

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.model.parameters())
        area = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in self.area.items())
        return (
            f"Nowcaster({self._name!r}, lead {self.lead_s / 60:g} min, {count:,} parameters, "
            f"area {area})"
        )

    def predict(self, asked: Any, *, context: Any) -> Any:
        """The wind at places and times.

        asked: a Polars or pandas table, a row a point, or an xarray dataset whose coordinates or
        variables are lat_deg, lon_deg, alt_ft and ts_s or `time` (Unix seconds, datetimes, in UTC
        where they have no zone, or texts in ISO 8601). context: the winds that are known, a file as
        of `tradewind nowcast --context`, or a table or dataset of ts_s (or `time`), lat_deg,
        lon_deg, alt_ft, u_m_s, v_m_s.
        Gives what was asked, with the index of a pandas table, and u_m_s, v_m_s, their standard
        deviations u_spread_m_s and v_spread_m_s (null: not known) and nearest_km, the distance to
        the nearest wind of the last slice known (a minute), whatever more the model reads.
        Rows of a table of winds that give none are left out, which a UserWarning counts by reason;
        another tells where the winds known are too few for the recalibrated spread.
        InputError for a row that is no place and time, a place outside the area or a time that the
        lead does not reach.
        """
        wanted, back = taken(asked)
        places = [points.Point(*row) for row in wanted.select(handed.ASKED).iter_rows()]
        if not places:
            raise InputError("no point was asked for", remedy="give a table with a row a point")
        refusals.refuse_outside(places, self.area)
        settings, usual_m_s = params.inference(), doubtful.usual(self._prepared["scaler"])
        if isinstance(context, str | Path):
            path, where = Path(context), str(context)
            known = capture.read(path, settings.decode, usual_m_s=usual_m_s)
            table = capture.form(path) == "ours"
        else:
            rows = handed.timed(handed.given(context, handed.NAMES))
            winds = handed.columns(rows, capture.COLUMNS, "the context")
            for doubt in doubtful.doubts(winds, usual_m_s):
                warnings.warn(f"the context: {doubt}", UserWarning, stacklevel=2)
            known, where = capture.usable(winds, settings.decode), "the table of winds"
            table = True
        if table and (told := refusals.counted(known[1])):  # of frames most hold no wind
            warnings.warn(f"rows of {where} were left out: {told}", UserWarning, stacklevel=2)
        winds_there = nowcast.answer(
            self.model,
            self._prepared,
            places,
            (*known, where),
            settings=settings,
            folder=self.folder,
        )
        if told := answers.unlike(winds_there):
            warnings.warn(f"spread: {told}", UserWarning, stacklevel=2)
        return back(answers.table(winds_there).select(WIND))


def load(path_or_name: str | Path = anywhere.EXAMPLE) -> Nowcaster:
    """A trained cell of the winds: its folder, its name as `tradewind audit` has it or a shorter
    one that fits no other cell, or `example`, the small one that is installed, too. InputError
    where there is none; DataError for weights that we did not write."""
    return Nowcaster(named.folder(path_or_name))


def example() -> tuple[Nowcaster, pl.DataFrame, float]:
    """The installed model, half an hour of winds, and the Unix seconds that they reach."""
    home = anywhere.example()
    time_s: float = files.read_json(home / "example.json")["time_s"]
    return load(), pl.read_parquet(home / "winds.parquet"), time_s


def fit(model: str, data: Any, **settings: Any) -> fields.Fitted | sequences.Fitted:
    """Train a model to data of one's own, in memory.

    data: for a model of fields (`msa`, say) a mapping of context_x (S, C, X), context_y (S, C, I),
    target_x (S, T, X) and target_y (S, T, O); for `sigma_gpt` sequences of whole numbers (N, T).
    settings: steps, learning_rate, batch, seed, arguments, and of sequences order: as
    stages/fields/fitted.py and stages/sequences/fitted.py tell them. Gives a model that answers
    (`predict`; of sequences `sample` and `law`), with its `history` and its error (`error`; of
    sequences `nats`) on what it was not trained on. InputError, DivergedError.
    """
    family = _family(model)
    asked.refuse_unknown(family.fit, settings)
    return family.fit(model, data, **settings)


def _family(model: str) -> Any:
    """Whose a model is. InputError, naming those that can be fitted, for an unknown one."""
    for family in (fields, sequences):
        if model in family.names():
            return family
    known = fields.fittable() + sequences.fittable()
    raise InputError(
        "there is no such model",
        where=asked.WHERE,
        expected=f"of {', '.join(known)}",
        found=f"{model!r}" + params.nearest(model, known).split(" (")[0],
        remedy="name one of these",
    )


def decode(frames: Any, *, reports: bool = False) -> Any:
    """Raw Mode-S and ADS-B frames to winds: those of aircraft's replies, and those that aircraft
    measured and reported themselves (register 4,4).

    frames: a file in any form that `tradewind nowcast --context` takes, a Polars or pandas table
    with the columns ts_s (Unix seconds, or datetimes) and frame (14 or 28 hexadecimal digits), or
    pairs of these.
    Gives a table of ts_s, lat_deg, lon_deg, alt_ft, u_m_s, v_m_s in order of time: pandas for
    pandas, else Polars; an empty one of an empty one. reports: those of register 4,4 alone, with
    icao, temperature_k, pressure_hpa, humidity_percent and turbulence (0 nil to 3 severe), null
    where not told.
    What gave no wind is counted by reason in a UserWarning. InputError for what is no such table
    or file; with `reports` DataError for a file of winds or states, which holds no frame.
    """
    settings = params.inference().decode
    with framed(frames) as (file, called):
        empty = called == FRAMED and not file.stat().st_size
        if empty:
            found, dropped = reported.reports(file, settings)
            found = found if reports else found.select(capture.COLUMNS)
        else:
            read = _reports if reports else capture.read
            found, dropped = read(file, settings, called)
    counted = refusals.counted(dropped)
    told = [f"no {'report' if reports else 'wind'} is left"] if found.is_empty() else []
    told += [f"dropped: {counted}"] if counted else []
    if told and not empty:
        warnings.warn(f"{called}: {'; '.join(told)}", UserWarning, stacklevel=2)
    return found.to_pandas() if handed.is_pandas(frames) else found


def _reports(file: Path, settings: Any, called: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """The reports of a file of frames, which errors call `called`, and what gave none by reason."""
    if (kind := capture.form(file, called)) != "frames":
        raise DataError(
            "there are no frames to find reports in",
            where=called,
            found=f"a table of {'states' if kind == 'states' else 'winds'}",
            expected="raw frames with their times",
            remedy="give the capture that it was decoded from",
        )
    try:
        return reported.reports(file, settings)
    except TradewindError as error:
        says = " ".join(str(error).split()).replace(str(file), called)
        raise DataError("the frames cannot be read", where=called, found=says) from None


@contextmanager
def framed(frames: Any) -> Iterator[tuple[Path, str]]:
    """A file with the frames and what errors call it: the one that is named, or a temporary one of
    the table or pairs, without a line where that has no row. InputError for a table of no frame."""
    if isinstance(frames, str | Path):
        yield Path(frames), str(frames)
        return
    table = _framed_rows(frames)
    with tempfile.TemporaryDirectory(prefix="frames-") as folder:
        file = Path(folder) / "frames.csv"
        table.write_csv(file, include_header=False)  # no line that the caller did not give
        if len(table) and not holds_frames(file):
            raise InputError(
                "the column frame holds no frame",
                where=FRAMED,
                found=f"{table['frame'][0]!r:.80} in row 1",
                expected="14 or 28 hexadecimal digits",
            )
        yield file, FRAMED


def _framed_rows(frames: Any) -> pl.DataFrame:
    """Frames of a table or of pairs as ts_s, float64 Unix seconds, and frame. InputError."""
    if isinstance(frames, Iterable) and not hasattr(frames, "columns"):
        table = paired(list(frames))
    else:
        table = handed.polars(frames, FRAMES)
    missing = [name for name in FRAMES if name not in table.columns]
    if missing:
        raise InputError(
            "the frames lack columns", expected="ts_s, frame", found=f"no {', '.join(missing)}"
        )
    if table.is_empty():  # whose columns have no kind yet
        return pl.DataFrame(schema={"ts_s": pl.Float64, "frame": pl.String})
    if table["frame"].dtype != pl.String:
        raise InputError(
            "the column frame holds no texts",
            found=str(table["frame"].dtype),
            expected="14 or 28 hexadecimal digits",
        )
    return table.select(handed.seconds(table["ts_s"], FRAMED), "frame")


def paired(frames: list[Any]) -> pl.DataFrame:
    """Pairs of a time and a frame as a table. InputError, naming the first, for what is no pair."""
    for number, pair in enumerate(frames, 1):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[1], str)):
            raise InputError(
                "that is no pair of a time and a frame",
                where=f"row {number}",
                found=f"{pair!r:.80}",
                expected="a table, or pairs of Unix seconds and hexadecimal digits",
            )
    columns = zip(*frames, strict=True) if frames else ((), ())
    return pl.DataFrame(
        [read.of_list(name, list(part)) for name, part in zip(FRAMES, columns, strict=True)]
    )


def taken(asked: Any) -> tuple[pl.DataFrame, Any]:
    """What was asked, as a table of ASKED, and what puts answers beside it in its own form."""
    if not hasattr(asked, "data_vars"):
        table = handed.polars(asked, handed.NAMES)

        def beside(found: pl.DataFrame) -> Any:
            if not handed.is_pandas(asked):
                return table.drop(WIND, strict=False).hstack(found)
            old = [name for name in WIND if name in asked.columns]
            new = {name: found[name].to_numpy() for name in found.columns}
            return asked.drop(columns=old).assign(**new)

        return handed.asked(table), beside
    table, shape, dims = handed.of_xarray(asked, handed.NAMES)

    def onto(found: pl.DataFrame) -> Any:
        return asked.assign(
            {name: (dims, found[name].to_numpy().reshape(shape)) for name in found.columns}
        )

    return handed.asked(table), onto
