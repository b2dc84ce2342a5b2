"""Series: tables read strictly, damage by damage; parts, borders and starts; windows without masked
cells; rivals; from a made series to its table."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import files, seeds
from stages.dynamics.layout import ABOUT, SERIES, STARTS
from stages.dynamics.models import build
from stages.dynamics.printed import companions
from stages.dynamics.series import (
    acquire,
    evaluate,
    figures,
    measure,
    prepare,
    tables,
    train,
    validate,
)
from stages.dynamics.series.read import carried, read
from stages.dynamics.series.rivals import Autoregression, Yesterday
from stages.dynamics.series.settings import Ahead, Borders, Made, Reading, Series, series_of
from stages.dynamics.series.windows import SeriesWindows
from stages.errors import DataError, InputError
from stages.params import checked, load
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.cells import Cell, arguments
from stages.training.checkpoint import Checkpoints

ROOT = Path(__file__).parents[2]
STAMPS = "%Y-%m-%d %H:%M:%S"
READING = {"file": "t.csv", "stamps": STAMPS, "step_s": 3600}
RESERVOIR = {"units": 40, "group": 0, "overlap": 0, "radius": 0.8, "reach": 0.1, "shift": 0.5,
             "leak": 0.5, "penalty": 1e-4, "noise": 0.01, "washout": 20, "thin": 1}  # fmt: skip
AHEAD = {"starts": 20, "context": 24, "horizon": 24, "threshold": 0.5, "spectrum": 12, "blocks": 5,
         "selection": {"starts": 5, "context": 24, "horizon": 24}}  # fmt: skip
TOLD = {
    "datasets": ("tides",),
    "reading": {"tides": {**READING, "file": "tides.csv"}},
    "borders": {"tides": {"convention": "document", "parts": (6, 2, 2)}},
    "forecasts": {"tides": AHEAD},
    "training": {"tides": {"steps": 60, "validate_every": 30, "patience": 9, "batch": 16,
                           "learning_rate": 0.01, "schedule": "cosine", "window": 8, "warm": 4,
                           "counted": 8, "noise": 0.01, "val_windows": 32}},
    "rivals": {"tides": {"linear": {"delays": 12, "penalty": 1e-6}, "reservoir": RESERVOIR}},
}  # fmt: skip


def rows(count: int = 6, **instead: str) -> str:
    """A table of an hourly stamp and two columns; `r3`: that row's text instead."""
    lines = [f"2020-01-01 {k:02d}:00:00,{k}.5,{2 * k}" for k in range(count)]
    for name, text in instead.items():
        lines[int(name[1:])] = text
    return "\n".join(["date,a,b", *lines]) + "\n"


def told(text: str, folder: Path, **reading):
    (folder / "t.csv").write_text(text)
    return read(folder, checked(Reading, READING | reading, "reading"))


# --- reading


def test_a_whole_table_is_read_as_it_is(tmp_path):
    table = told(rows(), tmp_path)
    assert table.columns == ("a", "b") and table.mended == {}
    np.testing.assert_array_equal(table.values, [[k + 0.5, 2 * k] for k in range(6)])


DAMAGE = {
    "text": (rows(r3="2020-01-01 03:00:00,warm,6"), r"1, the first in row 4, column 'a': 'warm'"),
    "empty": (rows(r2="2020-01-01 02:00:00,2.5,"), r"1, the first in row 3, column 'b': ''"),
    "not finite": (rows(r1="2020-01-01 01:00:00,nan,2"), r"1, the first in row 2, column 'a'"),
    "sentinel": (rows(r4="2020-01-01 04:00:00,4.5,-9999"), r"1, the first in row 5, column 'b'"),
    "gap": (rows(r5="2020-01-01 08:00:00,5.5,10"), r"3, the first after step 4"),
    "repeated": (rows(r3="2020-01-01 02:00:00,9,9") + "2020-01-01 03:00:00,3.5,6\n",
                 r"1, the first at step 2"),
    "unordered": (rows(r1="2020-01-01 02:00:00,2.5,4", r2="2020-01-01 01:00:00,1.5,2"),
                  r"1, the first after row 2"),
    "constant": ("date,a,b\n" + "".join(f"2020-01-01 0{k}:00:00,{k},7\n" for k in range(6)),
                 r"1, the first column b"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_counted_and_refused(kind, tmp_path):
    text, where = DAMAGE[kind]
    others = [one for one in (*DAMAGE,) if one not in (kind, "gap", "repeated", "unordered")]
    if kind == "repeated":
        others += ["unordered"]  # the row that follows goes back in time, too
    with pytest.raises(DataError, match=rf"the table is damaged: {kind}[\s\S]*{where}"):
        told(text, tmp_path, sentinels=(-9999.0,), mends=tuple(others))


@pytest.mark.parametrize("kind", ["text", "empty", "not finite", "sentinel"])
def test_a_damaged_cell_is_masked_where_declared_and_nothing_else(kind, tmp_path):
    table = told(DAMAGE[kind][0], tmp_path, sentinels=(-9999.0,), mends=(kind,))
    assert table.mended == {kind: 1} and np.isnan(table.values).sum() == 1
    whole = told(rows(), tmp_path)
    known = np.isfinite(table.values)
    np.testing.assert_array_equal(table.values[known], whole.values[known])


def test_rows_are_put_at_their_own_times(tmp_path):
    table = told(DAMAGE["gap"][0], tmp_path, mends=("gap",))
    assert table.values.shape == (9, 2) and table.mended == {"gap": 3}
    assert np.isnan(table.values[5:8]).all() and table.values[8, 0] == 5.5
    table = told(DAMAGE["unordered"][0], tmp_path, mends=("unordered",))
    np.testing.assert_array_equal(table.values, told(rows(), tmp_path).values)
    table = told(rows(r3="2020-01-01 02:00:00,9,9"), tmp_path, mends=("repeated", "gap"))
    assert table.values[2, 0] == 2.5 and np.isnan(table.values[3]).all(), "the first row stays"
    table = told(DAMAGE["constant"][0], tmp_path, mends=("constant",))
    assert table.columns == ("a",) and table.values.shape == (6, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (rows(r2="yesterday,2.5,4"), r"a stamp is no time[\s\S]*row 3: 'yesterday'"),
        (rows(r2="2020-01-01 02:20:00,2.5,4"), r"a stamp lies between two steps[\s\S]*row 3"),
        (rows(r5="2021-01-01 05:00:00,5.5,10"), r"more rows are missing than there are"),
        ("date,a,b\n", r"no table of numbers[\s\S]*no rows"),
        ("date\n2020-01-01 00:00:00\n", r"no column of numbers"),
        ("", r"no table of numbers"),
    ],
)
def test_what_is_no_series_is_refused(text, words, tmp_path):
    with pytest.raises(DataError, match=words):
        told(text, tmp_path, mends=("gap", "text", "empty"))


def test_archives_are_read_and_broken_ones_refused(tmp_path):
    text = "1,2\n3,5\n4,7\n"
    with gzip.open(tmp_path / "t.txt.gz", "wt") as stream:
        stream.write(text)
    bare = {"file": "t.txt.gz", "stamps": None, "step_s": 86400}
    table = read(tmp_path, checked(Reading, bare, "reading"))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 5], [4, 7]])
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("in/t.csv", rows().replace("a", "\u00b5a").encode("latin-1"))
    zipped = {**READING, "file": "t.zip", "member": "in/t.csv", "encoding": "latin-1"}
    assert len(read(tmp_path, checked(Reading, zipped, "reading")).values) == 6
    for lacking in ({"member": "other.csv"}, {"encoding": "utf-8"}):
        with pytest.raises(DataError, match="no table of numbers"):
            read(tmp_path, checked(Reading, zipped | lacking, "reading"))
    (tmp_path / "t.zip").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(DataError, match="no table of numbers"):
        read(tmp_path, checked(Reading, zipped, "reading"))


def test_masked_cells_take_the_last_known_value():
    values = np.array([[np.nan, 1], [2, np.nan], [np.nan, 3], [4, np.nan]])
    np.testing.assert_array_equal(carried(values), [[2, 1], [2, 1], [2, 3], [4, 3]])


# --- parts


def test_both_conventions_of_borders():
    document = checked(Borders, {"convention": "document", "parts": (6, 2, 2)}, "borders")
    assert prepare.parts(17420, document) == {
        "train": (0, 10452), "val": (10452, 13936), "test": (13936, 17420)}  # fmt: skip
    months = checked(Borders, {"convention": "months", "parts": (8640, 2880, 2880)}, "borders")
    assert prepare.parts(17420, months) == {
        "train": (0, 8640), "val": (8640, 11520), "test": (11520, 14400)}  # fmt: skip
    with pytest.raises(InputError, match="the parts do not fit the series"):
        prepare.parts(14399, months)


@pytest.mark.parametrize("reach", [0, 24])
def test_no_forecast_holds_a_masked_row_and_contexts_reach_back_where_they_may(reach):
    known = np.ones((300, 2), bool)
    known[[150, 290], [0, 1]] = False
    ahead = checked(Ahead, AHEAD, "ahead")
    starts = prepare.starting(known, (200, 300), ahead, reach)
    assert len(starts) == 20 and starts.max() == 290 - 25
    assert starts.min() == (199 if reach else 223), (
        "the first row that is forecast may be the first"
    )
    for start in starts:
        assert known[start - 23 : start + 25].all() and start - 23 >= 200 - reach
    with pytest.raises(InputError, match="none of them masked"):
        prepare.starting(known, (250, 300), ahead, 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    for name in ("raw/tides", "prepared/tides"):
        (folder / name).mkdir(parents=True)
    acquire.make(Made(seed=0, rows=600, columns=3), folder / "raw/tides")
    one = checked(Series, TOLD, "families.series")
    table = read(folder / "raw/tides", one.reading["tides"])
    table.values[100, 1] = np.nan
    prepare.write(table, folder / "prepared/tides", one.reading["tides"], one.borders["tides"],
                  one.forecasts["tides"])  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def series_told() -> Series:
    return checked(Series, TOLD, "families.series")


def test_columns_are_standardised_by_what_trains(place):
    (series,) = np.load(place / "prepared/tides" / SERIES)
    for place_, column in enumerate(series[:360].T):
        known = np.delete(column, 100) if place_ == 1 else column
        assert known.mean() == pytest.approx(0, abs=1e-12) and known.std() == pytest.approx(1)
    assert series[100, 1] == series[99, 1], "carried forward"
    about = files.read_json(place / "prepared/tides" / ABOUT)
    assert about["masked"] == 1 and about["step"] == pytest.approx(1 / 24)
    starts = np.load(place / "prepared/tides" / STARTS)[:, 1]
    assert starts.min() - 23 >= 480 and starts.max() + 24 < 600


def test_windows_hold_no_masked_cell_and_stay_in_their_part(place, series_told):
    data = SeriesWindows.open(place / "prepared/tides", series_told.training["tides"], 0)
    train, val = (np.array(data.slices(part)) for part in ("train", "val"))
    assert train.min() == 0 and train.max() + data.length == 359
    assert not ((train <= 100) & (train + data.length >= 100)).any()
    assert {*range(88)} <= {*train.tolist()} and 101 in train
    assert val.min() >= 360 and val.max() + data.length < 480


def test_a_months_window_reaches_back_over_its_border(place, series_told):
    data = SeriesWindows.open(place / "prepared/tides", series_told.training["tides"], 0)
    data.about["convention"] = "months"
    window = min(data.slices("val"))
    targets = window + 1 + np.arange(data.length)[-data.budget.counted :]
    assert targets[0] == 360, "no row that trains is a target; the first that selects is one"
    batch = data.batch([window], None)
    assert torch.equal(batch.targets[0], data.series[0, targets])


def test_the_gate_counts_what_is_masked_and_how_levels_move(place):
    raw = place / "raw/tides"
    files.write_json(raw / "manifest.json", {"files": {}})
    found = validate.summed(raw, place / "prepared/tides", {})
    (raw / "manifest.json").unlink()
    assert [row["masked"] for row in found["columns"].rows] == [0, pytest.approx(1 / 600), 0]
    assert {row["part"]: row["rows"] for row in found["parts"].rows} == {
        "train": 360, "val": 120, "test": 120}  # fmt: skip


# --- rivals


def test_autoregression_finds_a_linear_law_and_runs_as_it_does():
    rng = seeds.stream(0, "law")
    turn = np.array([[0.9, -0.3], [0.3, 0.9]])
    rows_ = [rng.standard_normal(2)]
    for _ in range(400):
        rows_.append(turn @ rows_[-1] / np.sqrt(0.9))
    series = np.stack(rows_)[None]
    rule = Autoregression(2, 1e-12)
    rule.train(series[:, :300])
    found = rule.forecast(series[:, 290:301], 20)
    np.testing.assert_allclose(found, series[:, 301:321], rtol=1e-4, atol=1e-4)


def test_autoregression_that_explodes_is_told_as_diverged_and_never_a_nan():
    rule = Autoregression(1, 1e-12)
    rule.train(1.5 ** np.arange(12.0)[None, :, None])
    found = rule.forecast(np.full((2, 1, 1), 100.0), 40)
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, -1]).all()
    truth = measure.Truth(np.zeros((2, 40, 1)), np.arange(2), 1.0, 1.0, 0.5, 10)
    told_ = measure.forecasts.forecast_metrics(found, truth)
    assert told_["metrics"]["diverged"]["value"] == 1.0
    lost = int(np.isnan(found[0, :, 0]).argmax()) + 1
    assert told_["diverged_at"] == [lost] and 3 < lost < 12
    assert "NaN" not in files.json_text(told_)


def test_yesterday_repeats_the_last_day():
    context = np.arange(10.0)[None, :, None]
    found = Yesterday(3).forecast(context, 7)[0, :, 0]
    np.testing.assert_array_equal(found, [7, 8, 9, 7, 8, 9, 7])


# --- measured, tabulated, drawn


def test_a_network_and_its_rivals_are_measured_tabulated_and_drawn(place, series_told, tmp_path):
    told_, prepared = series_told, place / "prepared/tides"
    budget = told_.training["tides"]
    data = SeriesWindows.open(prepared, budget, 0)
    seeds.everything(0)
    chosen = {"width": 16, "output": "change"}
    model = build("gru", chosen, 3, float(data.about["change"]))
    settings = loop.Settings(60, 30, 9, 0.01, 4.0, 0, slices=16, schedule="cosine")
    history = loop.train(model, data, settings, Checkpoints(tmp_path / "kept"))
    run = tmp_path / "runs/tides/gru-base-none-s0"
    run.mkdir(parents=True)
    metadata = {"model": "gru", "arm": "base", "size": "none", "seed": 0, "observed": 3,
                "arguments": chosen, "scale": model.scale, "length": data.length}  # fmt: skip
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", history)
    opened = measure.Data.open(prepared, told_, 0)
    found = measure.companions(opened) | {run.name: measure.network(run, opened, 1, "cpu")}
    measure.write(found, opened, tmp_path / "evaluated/tides")
    told_ = files.read_json(tmp_path / "evaluated/tides/metrics.json")
    names = {"persistence", "mean", "yesterday", "linear", "reservoir", "gru-base-none-s0"}
    assert {*told_["cells"]} == names
    for cell in told_["cells"].values():
        assert cell["metrics"]["vpt"]["unit"] == "days" and cell["metrics"]["vpt"]["n"] == 20
        assert "vpt_document" not in cell["metrics"]
    assert 0 < told_["cells"]["gru-base-none-s0"]["metrics"]["vpt_val"]["value"] <= 1
    assert (
        told_["cells"]["linear"]["metrics"]["nrmse_1"]["value"]
        < told_["cells"]["persistence"]["metrics"]["nrmse_1"]["value"]
    )
    cells = {f"tides/{name}": cell for name, cell in told_["cells"].items()}
    content = {"cells": cells, "arms": over_seeds(cells), "about": {"tides": told_["about"]}}
    table = tables.results(content, "tides", {})
    assert len(table.rows) == 6 and table.rows[0][0].startswith("gru")
    assert "nan" not in " ".join(map(" ".join, table.rows)).lower()
    assert "masked cells: 1." in tables.sentence(content["about"]["tides"])
    (tmp_path / "figures").mkdir()
    figures.draw(tmp_path / "evaluated/tides", tmp_path / "figures", content, "tides")
    assert len([*(tmp_path / "figures").iterdir()]) == 2


def test_every_printed_number_stands_beside_an_arm_that_can_be_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    printed, parameters = companions("series"), load("params.yaml")
    assert {name.partition("/")[0] for name in printed} == {
        *("etth1", "etth1_months", "etth2", "ettm1", "ettm2", "electricity", "traffic", "jena")
    }
    for name, one in printed.items():
        model, _, arm = name.partition("/")[2].partition("-")
        assert arm in parameters.models[model].arms, name
        assert 0 <= one.document < 1, "days"
    assert printed["etth1/transformer-pre_dependent"].document == 0.08
    assert printed["jena/rhn-attention_dependent"].document == 0.18


@pytest.mark.parametrize("profile", ["mini", "sample", "full"])
def test_every_cell_of_a_profile_can_be_built(profile):
    parameters = load(ROOT / "params.yaml")
    declared = parameters.trained("series", profile).cells.values()
    assert declared
    assert {one.dataset for one in declared} <= {*series_of(parameters, profile).datasets}
    for one in declared:
        cell = Cell(one.model, one.arm, one.size, one.seed)
        model = build(one.model, arguments(cell, parameters), 7, 0.3)
        assert sum(weight.numel() for weight in model.parameters()) > 0, one


@pytest.mark.parametrize(
    ("main", "names", "words"),
    [
        (acquire.main, ["mini", "tide"], "did you mean 'tides'"),
        (prepare.main, ["mini", "etth1"], "unknown series"),
        (validate.main, ["mini", "ks_l22"], "unknown series"),
        (train.main, ["series", "mini", "tides", "gruu"], "did you mean 'gru'"),
        (evaluate.main, ["series", "mini", "tide"], "did you mean 'tides'"),
    ],
)
def test_a_name_that_is_none_is_told_before_any_work(main, names, words, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(names) == 2
    assert words in capsys.readouterr().err
