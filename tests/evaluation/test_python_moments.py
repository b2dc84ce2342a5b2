"""Times that Python and files hand over in kinds of their own, datasets as contexts, and what is
told of frames that gave no wind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import xarray

from stages import api
from stages.errors import InputError
from stages.winds.nowcast import capture

PLACE = {"lat_deg": [46.5], "lon_deg": [7.2], "alt_ft": [34e3]}
FRAME = "8D40621D58C382D690C8AC2863A7"


@pytest.fixture(scope="module")
def example():
    return api.example()


@pytest.fixture(scope="module")
def answer(example):
    model, winds, time_s = example
    return model.predict(pl.DataFrame({**PLACE, "ts_s": time_s}), context=winds)["u_m_s"][0]


@pytest.mark.parametrize("unit", ["s", "m", "ms", "ns"])
def test_moments_of_every_resolution_are_taken(example, answer, unit):
    model, winds, time_s = example
    times = np.array([int(time_s)], "M8[s]").astype(f"M8[{unit}]")
    table = pd.DataFrame(PLACE).assign(time=times)
    grid = xarray.Dataset({name: ("row", value) for name, value in PLACE.items()}).assign(
        time=("row", times)
    )
    assert time_s % 60 == 0
    for asked in (table, grid):
        found = model.predict(asked, context=winds)["u_m_s"]
        assert float(found.to_numpy()[0]) == pytest.approx(answer)
    frames = pd.DataFrame({"ts_s": times, "frame": [FRAME]})
    for given in (frames, [(times[0], FRAME)]):
        with pytest.warns(UserWarning, match="no wind is left; dropped: 1 no_pair"):
            assert len(api.decode(given)) == 0


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame])
def test_times_of_single_precision_are_refused(example, made, tmp_path):
    model, winds, time_s = example
    coarse = np.array([time_s], np.float32)
    points = made({**PLACE, "ts_s": coarse})
    known = winds.with_columns(pl.col("ts_s").cast(pl.Float32))
    known.write_parquet(tmp_path / "known.parquet")
    known = known if made is pl.DataFrame else known.to_pandas()
    good = made({**PLACE, "ts_s": [time_s]})
    for work in (
        lambda: model.predict(points, context=winds),
        lambda: model.predict(good, context=known),
        lambda: model.predict(good, context=tmp_path / "known.parquet"),
        lambda: api.decode(made({"ts_s": coarse, "frame": [FRAME]})),
    ):
        with pytest.raises(InputError, match="off by up to a minute") as told:
            work()
        assert told.value.found == "ts_s: Float32"


def test_files_may_hold_moments_in_ts_s(example, answer, tmp_path):
    model, winds, time_s = example
    asked = pl.DataFrame({**PLACE, "ts_s": time_s})
    moments = winds.with_columns(pl.from_epoch(pl.col("ts_s") * 1e6, "us"))
    moments.write_parquet(tmp_path / "a.parquet")
    moments.with_columns(pl.col("ts_s").dt.to_string("iso:strict")).write_csv(tmp_path / "a.csv")
    for name in ("a.parquet", "a.csv"):
        found = model.predict(asked, context=tmp_path / name)
        assert found["u_m_s"][0] == pytest.approx(answer, abs=1e-4)


def test_truths_are_no_speeds(example, tmp_path):
    model, winds, time_s = example
    asked = pl.DataFrame({**PLACE, "ts_s": time_s})
    wrong = winds.with_columns(u_m_s=pl.lit(True))
    wrong.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no row of the capture can be read") as told:
        model.predict(asked, context=tmp_path / "a.parquet")
    assert told.value.found == "u_m_s True"
    with pytest.raises(InputError, match="holds no numbers") as told:
        model.predict(asked, context=wrong)
    assert told.value.found == "u_m_s: Boolean"


def test_a_dataset_of_winds_is_a_context(example, answer):
    model, winds, time_s = example
    asked = pl.DataFrame({**PLACE, "ts_s": time_s})
    known = xarray.Dataset.from_dataframe(winds.to_pandas())
    assert model.predict(asked, context=known)["u_m_s"][0] == pytest.approx(answer)
    with pytest.raises(InputError, match="the context lacks columns"):
        model.predict(asked, context=known.drop_vars("u_m_s"))


def test_the_threads_of_the_process_are_left_as_they_were(example, monkeypatch):
    model, winds, time_s = example
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        model.predict(pl.DataFrame({**PLACE, "ts_s": time_s}), context=winds)
        assert torch.get_num_threads() == before + 1
        with pytest.raises(InputError):
            model.predict(pl.DataFrame({**PLACE, "ts_s": 0.0}), context=winds)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("reports", [False, True])
@pytest.mark.parametrize(
    "nothing",
    [[], pl.DataFrame({"ts_s": [], "frame": []}), pd.DataFrame({"ts_s": [], "frame": []})],
    ids=["pairs", "polars", "pandas"],
)
def test_no_frames_are_no_winds(nothing, reports, recwarn):
    found = api.decode(nothing, reports=reports)
    assert len(found) == 0 and not recwarn
    assert [*found.columns][:1] == ["ts_s"] and {*capture.COLUMNS} <= {*found.columns}
    kinds = found["ts_s"].dtype, found["u_m_s"].dtype
    assert kinds in ((pl.Float64, pl.Float64), (np.dtype("f8"), np.dtype("f8")))


def test_what_is_said_of_frames_is_said_of_the_callers_own(example):
    _, _, time_s = example
    for given in ([(time_s, "zz")] * 2, pl.DataFrame({"ts_s": [time_s], "frame": ["zz"]})):
        for reports in (False, True):
            with pytest.raises(InputError, match="holds no frame") as told:
                api.decode(given, reports=reports)
            assert told.value.where == "the frames" and "u_kn" not in str(told.value)
    assert api.decode([(1000 * time_s, FRAME)]).is_empty()  # milliseconds
    with pytest.warns(UserWarning, match="^the frames: no report is left$"):
        api.decode([(time_s, FRAME)], reports=True)
