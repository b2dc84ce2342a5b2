"""`tradewind score`: a file that no split holds gets the numbers that the evaluation would give it,
and what cannot be scored is refused."""

import json
import sys

import numpy as np
import polars as pl
import pytest
import torch

from stages import cli, files, params, seeds
from stages.errors import InputError
from stages.fields import measure as sets_measured
from stages.fields import problem
from stages.fields.evaluation_data import Settings as SetSettings
from stages.fields.models import build as build_field
from stages.fields.problems.darcy import make as media
from stages.fields.problems.darcy import read as darcy
from stages.fields.sets import PreparedSets
from stages.params import Darcy
from stages.params.sequences import Text
from stages.scores import lone
from stages.sequences import tokens
from stages.sequences.data import text
from stages.sequences.evaluation import measure as sequences_measured
from stages.sequences.evaluation.data import Settings as OrderSettings
from stages.sequences.models import build as build_sequences
from stages.training import store
from stages.verbs.score import family_of
from stages.winds import measure
from stages.winds.evaluation_data import EvaluationData
from stages.winds.evaluation_data import Settings as WindSettings

START = 1_768_456_800.0  # of the toy airspace
CELL = "wind_nowcast/mini/toy"
DRAWN = np.random.default_rng(5)
LINES = ["".join(DRAWN.choice([*"abcdefgh "], 20)) + "\n" for _ in range(120)]


def ask(root, settings, cell, file, even=False):
    asked = lone.opened(cell, file, settings, even, root)
    return asked, family_of(asked.prepared).score(asked)


# --- winds


@pytest.fixture(scope="module")
def flown(airspace, tmp_path_factory):
    """The winds of the toy's test minutes and of their contexts, as a file."""
    folder = tmp_path_factory.mktemp("flown")
    rows = pl.read_parquet(airspace / "winds.parquet").filter(
        pl.col("ts_s").is_between(START + 3000, START + 4500, closed="left")
    )
    rows.write_parquet(folder / "test.parquet")
    return folder / "test.parquet"


@pytest.mark.parametrize("name", ["knn", "kernel", "msa-gaussian-5k-s0"])
def test_a_capture_of_the_test_minutes_has_the_evaluated_errors(airspace, settings, flown, name):
    _, scored = ask(airspace, settings, f"{CELL}/{name}", flown)
    prepared = airspace / "data/mini/prepared/toy"
    how = WindSettings((10.0,), 0, settings.contexts)
    _, table, _ = measure.measure(
        measure.load(airspace / "reports/wind_nowcast/mini/runs/toy" / name),
        EvaluationData.open(prepared, how),
        how,
    )
    area = files.read_json(prepared / "prepared.json")["area"]
    inside = table.filter(*(pl.col(key).is_between(*edges) for key, edges in area.items()))
    error = inside.select(
        ((pl.col("u_pred_m_s") - pl.col("u_m_s")) ** 2).mean(),
        ((pl.col("v_pred_m_s") - pl.col("v_m_s")) ** 2).mean(),
    ).row(0)
    found = scored.metrics["rmse_component_m_s"]
    assert found["value"] == pytest.approx((sum(error) / 2) ** 0.5, rel=1e-5)
    assert scored.counts["scored"] == found["n"] == len(inside) < len(table)
    outside = "outside the area that the cell was trained in"
    assert scored.dropped[outside] == len(table) - len(inside)
    assert "low" not in found and lone.TRAINED_ON not in scored.counts
    assert scored.notes[-1].endswith("too short for an interval")


def test_what_was_dropped_is_counted_by_reason(airspace, settings, flown, tmp_path):
    rows = pl.read_parquet(flown)
    torn = rows[:7].with_columns(alt_ft=pl.lit(None, pl.Float64))
    fast = rows[:5].with_columns(u_m_s=pl.lit(400.0))
    pl.concat([rows, rows[:3], torn, fast]).write_parquet(tmp_path / "a.parquet")
    _, scored = ask(airspace, settings, f"{CELL}/knn", tmp_path / "a.parquet")
    whole = ask(airspace, settings, f"{CELL}/knn", flown)[1]
    dropped = {"duplicate": 3, "null": 7, "over_wind_max": 5}
    assert {name: scored.dropped[name] for name in dropped} == dropped
    assert scored.metrics == whole.metrics
    late = scored.dropped["without a wind one lead before"]
    assert late == rows.filter(pl.col("ts_s") < START + 3780).height > 0  # quiet until 3130 s
    assert scored.counts["winds"] == len(rows)


def test_winds_that_the_cell_was_trained_on_are_refused_unless_asked_for(airspace, settings):
    with pytest.raises(InputError, match="was trained or selected on this file"):
        ask(airspace, settings, f"{CELL}/knn", airspace / "winds.parquet")
    scored = ask(airspace, settings, f"{CELL}/knn", airspace / "winds.parquet", even=True)[1]
    rows = pl.read_parquet(airspace / "data/mini/prepared/toy/rows.parquet")
    area = files.read_json(airspace / "data/mini/prepared/toy/prepared.json")["area"]
    fitted = rows.filter(
        pl.col("split").is_in((0, 1)),
        *(pl.col(key).is_between(*edges) for key, edges in area.items()),
    )
    assert scored.counts[lone.TRAINED_ON] == len(fitted) > 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (pl.col("lat_deg") + 20, "outside the area that the cell was trained in"),
        (pl.col("ts_s").mul(0.01).alias("ts_s") + START, "can be forecast from another one"),
        (pl.lit(999.0).alias("u_m_s"), "holds no usable wind"),
    ],
)
def test_captures_of_which_nothing_can_be_scored(airspace, settings, flown, tmp_path, change, told):
    pl.read_parquet(flown).with_columns(change).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=told):
        ask(airspace, settings, f"{CELL}/knn", tmp_path / "a.parquet")


def test_whether_a_cell_was_trained_on_a_capture_must_be_known(airspace, settings, flown, tmp_path):
    for part in ("data/mini/prepared/toy/prepared.json", "reports/wind_nowcast/mini/runs/toy/knn"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).symlink_to(airspace / part)
    with pytest.raises(InputError, match="cannot be told"):
        ask(tmp_path, settings, f"{CELL}/knn", flown)
    assert ask(tmp_path, settings, f"{CELL}/knn", flown, even=True)[1].metrics


# --- fields


def prepared_media(root, counts):
    """Darcy's media prepared as data set `darcy`, and an untrained cell of it."""
    raw, folder = root / "raw", root / "data/mini/prepared/darcy"
    media.make(Darcy(seed=1, train=30, test=12, lattice=16, refinement=1), raw)
    folder.mkdir(parents=True)
    made = darcy.read(raw, 0, counts)
    told = {"reader": "darcy", "seed": 0, "context": counts.context, "targets": counts.targets}
    problem.write(made, folder, told)
    held = PreparedSets.open(folder)
    seeds.everything(0)
    meta = {
        "module": "stages.fields.models.cnp",
        "model": "cnp",
        "arm": "shared",
        "size": "20k",
        "seed": 0,
        "arguments": {"encoder": "shared", "width": 8},
        **held.dimensions,
        "targets": None,
        "prepared": {key: held.meta[key] for key in ("scaler", "loss", "names", "units")},
    }
    run = root / "reports/sparse_fields/mini/runs/darcy/cnp-shared-20k-s0"
    run.mkdir(parents=True)
    model = build_field("cnp", {"encoder": "shared"}, {"width": 8}, **held.dimensions)
    (run / "weights.safetensors").write_bytes(store.dump(model, meta))
    files.write_json(run / "history.json", {"val": []})
    return root


FIELD = "sparse_fields/mini/darcy/cnp-shared-20k-s0"


@pytest.fixture(scope="module")
def porous(tmp_path_factory):
    return prepared_media(tmp_path_factory.mktemp("porous"), problem.Counts(40, 60))


def other_media(folder, lattice, seed=7):
    media.make(Darcy(seed=seed, train=2, test=9, lattice=lattice, refinement=1), folder)
    return folder / f"darcy_test_{lattice}.pt"


def test_the_own_test_archive_has_the_evaluated_errors(tmp_path, settings):
    """With all points of the lattice as context and targets nothing is drawn."""
    root = prepared_media(tmp_path, problem.Counts(256, 256))
    _, scored = ask(root, settings, FIELD, root / "raw/darcy_test_16.pt")
    batch = settings.run.learning["darcy"].batch
    entry = sets_measured.cell(
        root / "reports/sparse_fields/mini/runs/darcy/cnp-shared-20k-s0",
        root / "data/mini/prepared/darcy",
        SetSettings(batch, settings.run.evaluation.bootstrap, settings.training.seed),
    )
    for name in ("rmse", "mse", "r2", "rmse_batch_mean"):
        found, known = scored.metrics[name], entry["metrics"][name]
        assert found["n"] == known["n"] and found["unit"] == known["unit"]
        for key in ("value", "low", "high"):
            assert found[key] == pytest.approx(known[key], rel=1e-4)


@pytest.mark.parametrize("lattice", [8, 32])
def test_an_archive_of_another_resolution_is_scored_on_its_own_lattice(
    porous, settings, tmp_path, lattice
):
    file = other_media(tmp_path / "raw", lattice)
    _, scored = ask(porous, settings, FIELD, file)
    targets = min(60, lattice**2)
    assert scored.counts == {"samples": 9, "context points of each": 40, "targets of each": targets}
    assert scored.metrics["rmse"]["n"] == 9 * targets and scored.metrics["rmse"]["low"] > 0
    assert scored.notes == (f"lattice {lattice} x {lattice}; the cell was trained on 16 x 16",)
    assert scored.metrics["rmse"]["value"] ** 2 == pytest.approx(scored.metrics["mse"]["value"])
    # an untrained network is about as far off as the spread of what it is asked for
    spread = np.sqrt((darcy.unpack(file)[1] ** 2).mean())
    assert 0.2 * spread < scored.metrics["rmse"]["value"] < 20 * spread


def test_a_lattice_without_enough_points_gives_all_it_has_and_says_so(porous, settings, tmp_path):
    x, y = (torch.from_numpy(part) for part in darcy.unpack(porous / "raw/darcy_test_16.pt"))
    coarse = [part[:, ::4, ::4].contiguous() for part in (x, y.float())]
    torch.save(dict(zip("xy", coarse, strict=True)), tmp_path / "four.pt")
    scored = ask(porous, settings, FIELD, tmp_path / "four.pt")[1]
    assert scored.counts["context points of each"] == scored.counts["targets of each"] == 16
    assert sorted(scored.dropped.values()) == [24, 44]


def test_media_that_the_cell_was_trained_on_are_refused_at_any_resolution(
    porous, settings, tmp_path
):
    raw = porous / "raw/darcy_train_16.pt"
    with pytest.raises(InputError, match="30 of 30 samples"):
        ask(porous, settings, FIELD, raw)
    assert ask(porous, settings, FIELD, raw, even=True)[1].counts[lone.TRAINED_ON] == 30
    x, y = (torch.from_numpy(part) for part in darcy.unpack(raw))
    new = [torch.from_numpy(part) for part in darcy.unpack(porous / "raw/darcy_test_16.pt")]
    coarse = [
        torch.cat((a[:4], b))[:, ::2, ::2].contiguous() for a, b in zip((x, y), new, strict=True)
    ]
    torch.save({"x": coarse[0], "y": coarse[1].float()}, tmp_path / "coarse.pt")
    with pytest.raises(InputError, match="4 of 16 samples"):
        ask(porous, settings, FIELD, tmp_path / "coarse.pt")


# --- sequences


@pytest.fixture(scope="module", params=["sigma_gpt", "diffusion"])
def plays(request, tmp_path_factory):
    """A text prepared as data set `plays`, and an untrained cell of it."""
    root = tmp_path_factory.mktemp(request.param)
    folder, raw = root / "data/mini/prepared/plays", root / "raw"
    folder.mkdir(parents=True)
    raw.mkdir()
    (raw / "input.txt").write_text("".join(LINES))
    config = Text(length=16)
    made = text.read(raw, 0, config)
    tokens.write(made, folder, config.model_dump(mode="json"))
    seeds.everything(0)
    size = {"width": 16, "keys": 8, "hidden": 16, "heads": 2, "blocks": 1}
    meta = {
        "module": f"stages.sequences.models.{request.param}",
        "model": request.param,
        "arm": "random",
        "size": "tiny",
        "seed": 0,
        "arguments": size,
        "order": "random" if request.param == "sigma_gpt" else "diffusion",
        "vocabulary": made.vocabulary,
        "length": 16,
    }
    run = root / f"reports/any_order/mini/runs/plays/{request.param}-random-tiny-s0"
    run.mkdir(parents=True)
    model = build_sequences(request.param, size, None, made.vocabulary, 16)
    (run / "weights.safetensors").write_bytes(store.dump(model, meta))
    files.write_json(run / "history.json", {"val": []})
    return root, f"any_order/mini/plays/{run.name}", run


def test_the_test_part_as_a_file_has_the_evaluated_likelihood(plays, settings):
    root, cell, run = plays
    prepared = root / "data/mini/prepared/plays"
    whole = "".join(LINES)
    first = text.cuts(whole, (8, 1, 1))[2]
    (root / "part.txt").write_text(whole[first:])
    _, scored = ask(root, settings, cell, root / "part.txt")
    how = OrderSettings(settings.run.orders, settings.training.seed)
    data = sequences_measured.EvaluationData.open(prepared, how)
    model, meta = sequences_measured.load(run)
    expected = sequences_measured.likelihood(model, meta["order"], data)
    assert scored.metrics == {
        name: one for name, one in expected.items() if not name.endswith("_val")
    }
    assert set(scored.shown) == set(scored.metrics)
    law = files.read_json(prepared / "sequences.json")["law"]["per"]["test"]
    assert {name: scored.counts[name] for name in ("tokens", "characters", "words")} == {
        name: law[name] for name in ("tokens", "characters", "words")
    }
    assert list(scored.dropped.values()) == [law["tokens"] % 16]


def test_a_text_that_the_cell_was_trained_on_is_refused_wherever_it_begins(plays, settings):
    root, cell, _ = plays
    new = "".join(reversed(LINES[:20])).replace("a", "\N{GREEK SMALL LETTER ALPHA}")
    (root / "moved.txt").write_text(new[:77] + "".join(LINES[3:40]))
    with pytest.raises(InputError, match=r"found: \d+ of the 1\d\d windows"):
        ask(root, settings, cell, root / "moved.txt")
    scored = ask(root, settings, cell, root / "moved.txt", even=True)[1]
    share = len("".join(LINES[3:40])) / 16
    assert abs(scored.counts[lone.TRAINED_ON] - share) < 2
    (root / "new.txt").write_text(new)
    unknown = "unknown characters, scored as <unk>"
    scored = ask(root, settings, cell, root / "new.txt")[1]
    assert scored.counts[unknown] == new.count("\N{GREEK SMALL LETTER ALPHA}") > 0
    assert lone.TRAINED_ON not in scored.counts


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("short.txt", b"a bee\n", "too short"),
        ("latin.txt", "caf\xe9 ".encode("latin-1") * 40, "cannot be read"),
        ("table.csv", b"a,b\n" * 40, "none of the texts"),
    ],
)
def test_files_that_are_no_texts(plays, settings, name, content, told):
    root, cell, _ = plays
    (root / name).write_bytes(content)
    with pytest.raises(InputError, match=told):
        ask(root, settings, cell, root / name)


# --- the verb


def test_files_of_another_kind_are_refused_by_each_family(airspace, porous, settings, flown):
    for root, cell, file in (
        (airspace, f"{CELL}/knn", porous / "raw/darcy_test_16.pt"),
        (porous, FIELD, flown),
    ):
        with pytest.raises(InputError) as error:
            ask(root, settings, cell, file)
        assert error.value.expected and error.value.found and error.value.remedy


def test_the_verb_prints_a_table_or_strict_json(airspace, settings, flown, monkeypatch, capsys):
    monkeypatch.chdir(airspace)
    monkeypatch.setattr(params, "load", lambda: settings)
    row = ""
    for words in ((), ("--json",)):
        monkeypatch.setattr(sys, "argv", ["tradewind", "score", f"{CELL}/knn", str(flown), *words])
        assert cli.main() == 0
        out = capsys.readouterr().out
        if words:
            told = json.loads(out, parse_constant=lambda word: pytest.fail(word))
            value = told["metrics"]["rmse_component_kn"]
            assert told["cell"] == f"{CELL}/knn" and told["sha256"] == files.sha256(flown)
            assert row.split()[1] == f"{value['value']:.6g}" and value["unit"] == row.split()[-2]
        else:
            row = next(line for line in out.splitlines() if line.startswith("rmse_component_kn"))
            assert "lead 10 min" in out and "dropped: " in out


@pytest.mark.parametrize(
    ("cell", "file", "told"),
    [
        (f"{CELL}/knm", "winds.parquet", "did you mean 'wind_nowcast/mini/toy/knn'"),
        (f"{CELL}/knn/nse", "winds.parquet", "no such trained cell"),
        (f"{CELL}/knn", "absent.parquet", "no such file"),
        (f"{CELL}/knn", "winds.parquet", "--even-if-trained-on"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(
    airspace, settings, monkeypatch, capsys, cell, file, told
):
    monkeypatch.chdir(airspace)
    monkeypatch.setattr(params, "load", lambda: settings)
    monkeypatch.setattr(sys, "argv", ["tradewind", "score", cell, file])
    assert cli.main() == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and err.startswith("error: ")
