"""An hour of winds as sets: contexts end a quarter of an hour before their targets, no minute
serves two splits, what cannot be used is counted.

The oracle is the raw table: every wind of the synthetic hour tells its minute by its value, and the
real hour's sums are hour_winds' own.
"""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import params
from stages.errors import DataError, InputError
from stages.fields import problem as table
from stages.fields.problem import Counts
from stages.fields.problems import hour

REAL = Path(os.environ.get("TRADEWIND_MIRROR", "")) / "mode-s" / "meteo-particle-model"
START_S, A_MINUTE = 1_484_136_030, 9  # half a minute before the first whole one


def winds(minutes=61) -> pl.DataFrame:
    """A table whose wind towards east is its minute from the first whole one (m/s), towards
    north its number in that minute."""
    number = np.arange(minutes * A_MINUTE)
    ts = START_S + 30 + 60.0 * (number // A_MINUTE) + number % A_MINUTE
    return pl.DataFrame(
        {
            "ts": ts,
            "icao": [f"A{k:05X}" for k in number],
            "lat": 50 + 0.01 * (number % 7),
            "lon": 4 + 0.02 * (number % 11),
            "alt": 30_000 + 100 * (number % 13),
            "vw": 0.0,
            "vwx": (number // A_MINUTE).astype(float),
            "vwy": (number % A_MINUTE).astype(float),
        }
    )


@pytest.fixture
def raw(tmp_path):
    winds().write_csv(tmp_path / "wind.csv")
    return tmp_path


def test_a_context_is_the_minute_a_lead_before_its_targets_and_minutes_keep_to_one_split(raw):
    sets = hour.read(raw, 0, Counts(6, 4))
    table.check(sets, "here")

    def minute(y):
        return np.rint(y[..., 0] * hour.KNOT_M_S).astype(int)

    assert (minute(sets.target_y) == sets.record[:, None]).all() and (
        minute(sets.context_y) == sets.record[:, None] - 16
    ).all()
    assert np.bincount(sets.split).tolist() == [8 * hour.DRAWS, 3 * hour.DRAWS, 13 * hour.DRAWS]
    used = [
        set(sets.record[sets.split == k]) | set(sets.record[sets.split == k] - 16) for k in range(3)
    ]
    assert not (used[0] & used[1] or used[0] & used[2] or used[1] & used[2])
    assert (sets.group == sets.record).all() and (sets.loss, sets.standardise) == ("rmse", True)


def test_the_splits_are_those_of_the_hours_winds_and_obey_their_law():
    prepared = params.load().profiles["sample"].prepare["hour_winds"]
    assert prepared.lead_s == hour.LEAD * hour.SLICE_S and prepared.slice_s == hour.SLICE_S
    for name, (first, last) in hour.MINUTES.items():
        assert getattr(prepared.split, name) == ((first * 60, last * 60),)


def test_points_are_drawn_once_in_a_set_and_anew_in_the_next(raw):
    sets = hour.read(raw, 0, Counts(6, 4))
    number = np.rint(sets.context_y[..., 1] * hour.KNOT_M_S).astype(int)
    assert (
        all(len(set(one)) == 6 for one in number.tolist())
        and len({tuple(sorted(one)) for one in number[: hour.DRAWS].tolist()}) > hour.DRAWS // 2
    )
    again, other = (hour.read(raw, seed, Counts(6, 4)) for seed in (0, 1))
    assert (sets.context_y == again.context_y).all() and (sets.context_y != other.context_y).any()
    few = hour.read(raw, 0, Counts(6, 4, sets=700))
    assert len(few.split) == 700 and set(map(bytes, few.target_y)) <= set(map(bytes, sets.target_y))


def test_positions_are_standardised_by_what_trains(raw):
    changed = winds().with_columns(
        lat=pl.when(pl.col("vwx") > 30).then(pl.col("lat") + 20).otherwise(pl.col("lat"))
    )  # of test minutes alone
    before = hour.read(raw, 0, Counts(9, 9))
    changed.write_csv(raw / "wind.csv")
    after = hour.read(raw, 0, Counts(9, 9))
    train = before.split == 0
    places = np.concatenate([before.context_x[train], before.target_x[train]]).reshape(-1, 3)
    assert np.allclose(places.mean(0), 0, atol=1e-9) and np.allclose(places.std(0), 1)
    assert (before.context_x[train] == after.context_x[train]).all() and after.target_x[
        after.split == 2
    ][..., 0].min() > 100


def test_what_cannot_be_used_is_left_out_and_counted_by_reason(raw):
    whole = winds()
    bad = (
        whole.head(1).with_columns(vwx=pl.lit(200.0)),
        whole.head(1).with_columns(lat=pl.lit(99.0)),
        whole.head(1).with_columns(ts=pl.lit(None, pl.Float64)),
        whole.head(2),
    )
    pl.concat([whole, *bad]).write_csv(raw / "wind.csv")
    kept, dropped = hour.rows(raw / "wind.csv")
    assert dropped == {"duplicate": 2, "null": 1, "outside_range": 1, "over_wind_max": 1} and len(
        kept
    ) == len(whole)
    assert hour.read(raw, 0, Counts(6, 4)).facts["dropped"] == dropped


def test_too_few_winds_and_damaged_files_are_told(raw, tmp_path):
    for counts, told in (
        (Counts(A_MINUTE + 1, 4), "as context"),
        (Counts(4, A_MINUTE + 1), "as targets"),
    ):
        with pytest.raises(InputError, match="fewer winds") as caught:
            hour.read(raw, 0, counts)
        assert told in str(caught.value)
    winds(50).write_csv(raw / "wind.csv")  # no hour
    with pytest.raises(InputError, match="in minute 50"):
        hour.read(raw, 0, Counts(6, 4))
    winds().drop("vwy").write_csv(raw / "wind.csv")
    with pytest.raises(DataError, match="vwy"):
        hour.read(raw, 0, Counts(6, 4))
    (raw / "wind.csv").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        hour.read(raw, 0, Counts(6, 4))


@pytest.mark.skipif(
    not (REAL / "wind.csv").is_file(), reason="TRADEWIND_MIRROR names no mirror with the real hour"
)
def test_the_real_hour_fills_every_minute():
    wanted = params.load().profiles["sample"].sets["hour_sets"]
    sets = hour.read(REAL, wanted.seed, Counts(wanted.context, wanted.targets))
    table.check(sets, "the real hour")
    assert sets.facts == {
        "rows": 39_830,
        "dropped": {"duplicate": 3, "over_wind_max": 12},
        "lead_s": 900,
    } and sets.context_x.shape == (768, 256, 3)
