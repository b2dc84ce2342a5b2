"""What `import tradewind` offers: a trained model asked from Python, frames decoded, a model of
fields or of sequences fitted to one's own data.

Tables are Polars or pandas frames, grids xarray datasets; the answer has the kind of the question.
Wind vectors are u east and v north, blowing towards, m/s; places are degrees north and east and
feet of pressure altitude; times are Unix seconds, UTC.
"""

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from stages import files, params
from stages.errors import InputError
from stages.fields import fitted as fields
from stages.sequences import fitted as sequences
from stages.winds.forecasts import PLACE
from stages.winds.nowcast import (
    answers,
    anywhere,
    capture,
    doubtful,
    named,
    nowcast,
    points,
    refusals,
    reported,
)

__all__ = ["Nowcaster", "decode", "fit", "load"]
ASKED = (*PLACE, "ts_s")
WIND = ("u_m_s", "v_m_s", "u_spread_m_s", "v_spread_m_s", "nearest_km")


class Nowcaster:
    """A trained cell of the winds, on the CPU.

    folder: where its weights lie; lead_s: seconds from the end of its context to the slice that
    it answers; area: lowest and highest lat_deg, lon_deg and alt_ft that it knows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model, meta = nowcast.load(folder)
        self._prepared: dict[Any, Any] = meta["prepared"]
        self.lead_s: float = self._prepared["lead_s"]
        self.area: dict[str, list[float]] = self._prepared["area"]

    def predict(self, asked: Any, *, context: Any) -> Any:
        """The wind at places and times.

        asked: a Polars or pandas table, a row a point, or an xarray dataset whose coordinates or
        variables are lat_deg, lon_deg, alt_ft and ts_s (Unix seconds; `time`, datetimes in UTC,
        does too). context: the winds that are known, a file as of `tradewind nowcast --context` or
        a table of ts_s, lat_deg, lon_deg, alt_ft, u_m_s, v_m_s.
        Gives what was asked with u_m_s, v_m_s, their standard deviations u_spread_m_s and
        v_spread_m_s (null: not known) and nearest_km, the distance to the nearest known wind.
        InputError for a place outside the area or a time that the lead does not reach.
        """
        rows, back = taken(asked)
        places = [points.Point(*row) for row in rows.select(ASKED).iter_rows()]
        if not places:
            raise InputError("no point was asked for", remedy="give a table with a row a point")
        refusals.refuse_outside(places, self.area)
        settings = params.inference()
        if isinstance(context, str | Path):
            known, where = capture.read(Path(context), settings.decode), str(context)
        else:
            winds = columns(polars(context), capture.COLUMNS, "the context")
            for doubt in doubtful.doubts(winds):
                warnings.warn(f"the context: {doubt}", UserWarning, stacklevel=2)
            known, where = capture.usable(winds, settings.decode), "the table of winds"
        winds_there = nowcast.answer(
            self.model,
            self._prepared,
            places,
            (*known, where),
            settings=settings,
            folder=self.folder,
        )
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
    sequences `nats`) on what it was not trained on. InputError, DataError, DivergedError.
    """
    return (fields if isinstance(data, Mapping) else sequences).fit(model, data, **settings)


def decode(frames: Any, *, reports: bool = False) -> Any:
    """Raw Mode-S and ADS-B frames to winds: those of aircraft's replies, and those that aircraft
    measured and reported themselves (register 4,4).

    frames: a file in any form that `tradewind nowcast --context` takes, a Polars or pandas table
    with the columns ts_s (Unix seconds) and frame (14 or 28 hexadecimal digits), or pairs of these.
    Gives a table of ts_s, lat_deg, lon_deg, alt_ft, u_m_s, v_m_s in order of time: pandas for
    pandas, else Polars. reports: those of register 4,4 alone, with icao, temperature_k,
    pressure_hpa, humidity_percent and turbulence (0 nil to 3 severe), null where not told.
    DataError for what holds no frame.
    """
    settings = params.inference().decode
    with framed(frames) as file:
        found = reported.reports(file, settings)[0] if reports else capture.winds(file, settings)
    return found.to_pandas() if _is_pandas(frames) else found


@contextmanager
def framed(frames: Any) -> Iterator[Path]:
    """A file with the frames: the one that is named, or a temporary one of the table or pairs."""
    if isinstance(frames, str | Path):
        yield Path(frames)
        return
    if isinstance(frames, Iterable) and not hasattr(frames, "columns"):
        table = pl.DataFrame(list(frames), schema=["ts_s", "frame"], orient="row")
    else:
        table = polars(frames)
    missing = [name for name in ("ts_s", "frame") if name not in table.columns]
    if missing:
        raise InputError(
            "the frames lack columns", expected="ts_s, frame", found=f"no {', '.join(missing)}"
        )
    with tempfile.TemporaryDirectory(prefix="frames-") as folder:
        file = Path(folder) / "frames.csv"
        table.select("ts_s", "frame").write_csv(file)
        yield file


def taken(asked: Any) -> tuple[pl.DataFrame, Any]:
    """What was asked, as a table of ASKED, and what puts answers beside it in its own form."""
    if not hasattr(asked, "data_vars"):
        table = polars(asked)

        def beside(found: pl.DataFrame) -> Any:
            both = table.drop(WIND, strict=False).hstack(found)
            return both.to_pandas() if _is_pandas(asked) else both

        return timed(table), beside
    import xarray

    names = [name for name in (*PLACE, "ts_s", "time") if name in asked.variables]
    spread = xarray.broadcast(*(asked[name].reset_coords(drop=True) for name in names))
    table = pl.DataFrame(
        {name: part.values.ravel() for name, part in zip(names, spread, strict=True)}
    )

    def onto(found: pl.DataFrame) -> Any:
        shape, dims = spread[0].shape, spread[0].dims
        return asked.assign(
            {name: (dims, found[name].to_numpy().reshape(shape)) for name in found.columns}
        )

    return timed(table), onto


def timed(table: pl.DataFrame) -> pl.DataFrame:
    """A table of points with its times in ts_s. InputError for columns that are missing."""
    if "ts_s" not in table.columns and "time" in table.columns:
        if table["time"].dtype == pl.String:
            seconds = pl.Series("ts_s", [points.parse_time(text) for text in table["time"]])
        else:
            seconds = table["time"].cast(pl.Datetime("us")).cast(pl.Int64).alias("ts_s") / 1e6
        table = table.with_columns(seconds.alias("ts_s"))
    return columns(table, ASKED, "the points")


def columns(table: pl.DataFrame, names: tuple[str, ...], what: str) -> pl.DataFrame:
    """Those columns as float64. InputError for one that is missing or holds no numbers."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"{what} lack columns" if what.endswith("s") else f"{what} lacks columns",
            expected=", ".join(names),
            found=f"no {', '.join(missing)}",
        )
    try:
        return table.select(pl.col(names).cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"a column of {what} holds no numbers", found=str(error).splitlines()[0]
        ) from None


def polars(table: Any) -> pl.DataFrame:
    """A table as Polars has it. InputError for what is none."""
    if isinstance(table, pl.DataFrame):
        return table
    if _is_pandas(table):
        return pl.DataFrame({name: table[name].to_numpy() for name in table.columns})
    raise InputError(
        "that is no table", found=type(table).__name__, expected="a Polars or pandas table"
    )


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas"
