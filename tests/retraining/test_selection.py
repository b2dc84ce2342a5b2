"""Which of several challengers faces the champion: the validation slices choose, cells of any
experiment compete, and what ignores its context never wins."""

import shutil
from pathlib import Path

import live_project
import pytest

from stages import files
from stages.training import store
from stages.winds.retraining import champions, compare, judge, ledger, selection
from stages.winds.retraining.place import Place

KNN, FAR, MEAN, BASE = (
    "wind_nowcast/knn",
    "wind_baselines/knn",
    "wind_nowcast/hour_average",
    "wind_nowcast/persistence",
)


@pytest.fixture()
def project(template, tmp_path, monkeypatch):
    """`knn` of two experiments, the nearest 64 reports in the one and 8 in the other, beside the
    mean of the hour."""
    shutil.copytree(template, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    live_project.cell("knn", experiment="wind_baselines", **live_project.BETTER)
    live_project.cell("knn", **live_project.WORSE)
    live_project.cell("hour_average")
    return Path.cwd()


def test_a_deaf_cell_is_passed_over_for_one_that_listens(project, monkeypatch):
    """Though it errs less on the validation slices."""
    lines = {
        KNN: {"cell": KNN, "validation_kn": 5.0, "reasons": ["It is deaf."]},
        FAR: {"cell": FAR, "validation_kn": 9.0, "reasons": []},
    }
    monkeypatch.setattr(selection, "about", lambda *given: lines[given[-1]])
    assert choose(KNN, FAR)[0] == choose(FAR, KNN)[0] == FAR


def choose(*challengers: str):
    parameters = live_project.settings(challengers=challengers)
    return selection.choose(
        Place.of(parameters), parameters, compare.Prepared.open(live_project.PREPARED)
    )


def weights(address: str) -> str:
    experiment, _, cell = address.partition("/")
    return files.sha256(f"reports/{experiment}/live/runs/captures/{cell}/weights.safetensors")


def test_the_cell_that_errs_least_on_the_validation_slices_is_chosen_whatever_its_place(project):
    for order in ((KNN, FAR, BASE), (BASE, FAR, KNN)):
        chosen, table = choose(*order)
        assert chosen == FAR and [line["cell"] for line in table] == list(order)
        errors = {line["cell"]: line["validation_kn"] for line in table}
        assert errors[FAR] < errors[BASE] and errors[FAR] < errors[KNN]


def test_the_test_slices_have_no_say(project):
    """What is measured in them does not move the choice's numbers."""
    before = choose(KNN, FAR)
    data = compare.Prepared.open(live_project.PREPARED)
    late = data.t_s >= data.edges(min(data.meta["slices"]["test"]))[0]
    columns = {name: column.copy() for name, column in data.columns.items()}
    columns["u_m_s"][late] += 50.0
    parameters = live_project.settings(challengers=(KNN, FAR))
    after = selection.choose(
        Place.of(parameters), parameters, compare.Prepared(data.meta, data.t_s, columns)
    )
    assert after == before


def test_one_alone_is_the_challenger_and_nothing_is_measured(project):
    assert choose(KNN) == (KNN, [])


def test_a_cell_of_another_experiment_becomes_champion_and_the_ledger_tells_of_all(project):
    parameters = live_project.settings(challengers=(KNN, FAR))
    assert judge.run(parameters)["verdict"] == "promoted"
    (entry,) = ledger.read()
    assert entry["cell"] == FAR and entry["after"] == weights(FAR)
    assert [line["cell"] for line in entry["challengers"]] == [KNN, FAR]
    assert any("audit wind_baselines/live/captures/knn/" in line for line in entry["recheck"])
    champion = champions.current(parameters)
    assert champion.reference["cell"] == FAR and FAR in ledger.render([entry])


def indifferent_cell(name: str, experiment: str = "wind_nowcast") -> None:
    """An msa whose answer is the scaler's mean everywhere: it errs by the wind's spread, whatever
    its context says."""
    import torch

    from stages.fields.models import build

    arguments = {"width": 12, "heads": 2, "layers": 1, "encoder": "shared", "head": "mean"}
    folder = live_project.cell(name, "msa", experiment=experiment, **arguments)
    _, meta = store.load(str(folder / "weights.safetensors"))
    net = build("msa", arguments)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    (folder / "weights.safetensors").write_bytes(store.dump(net, meta))
    live_project.record("train", [live_project.PREPARED], [folder], name, experiment)


def test_what_ignores_where_winds_were_measured_is_not_chosen_though_it_errs_least(project):
    """In a wind of noise alone the mean is the best there is, and no nowcast."""
    live_project.capture("noise.csv", live_project.winds(7200, field=False), 7200)
    live_project.cell("knn", **live_project.BETTER)
    live_project.cell("persistence")
    indifferent_cell("msa-shared-5k-s0")
    deaf = "wind_nowcast/msa-shared-5k-s0"
    _, table = choose(deaf, KNN)
    errors = {line["cell"]: line["validation_kn"] for line in table}
    reasons = {line["cell"]: line["reasons"] for line in table}
    assert errors[deaf] < errors[KNN]
    assert "does not use where winds were measured" in reasons[deaf][0]
    told = judge.run(live_project.settings(challengers=(deaf,), first_against=KNN))
    assert told["verdict"] == "refused" and champions.current(live_project.settings()) is None
    assert any("does not use where winds were measured" in line for line in told["reasons"])


def test_a_cell_that_cannot_be_used_leaves_the_others_and_is_told(project):
    live_project.cell("knn", experiment="wind_baselines", **live_project.BETTER)
    broken = live_project.RUNS / "knn/weights.safetensors"
    broken.write_bytes(b"none")
    live_project.record("train", [live_project.PREPARED], [broken.parent], "knn")
    chosen, table = choose(KNN, FAR)
    assert chosen == FAR and "cannot be used" in table[0]["reasons"][0]
    assert "validation_kn" not in table[0]
    (file := Path("reports/wind_baselines/live/runs/captures/knn/weights.safetensors")).write_bytes(
        b"none"
    )
    live_project.record("train", [live_project.PREPARED], [file.parent], "knn", "wind_baselines")
    assert choose(KNN, FAR)[0] == KNN  # the first of them, which the judgement refuses
    told = judge.run(live_project.settings(challengers=(KNN, FAR)))
    assert told["verdict"] == "refused" and "cannot be used" in " ".join(told["reasons"])
