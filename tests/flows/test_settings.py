"""What a retraining run brings to date and commits: the experiments whose cells compete."""

import pytest
import retraining_project

from flows.process import FlowError
from flows.settings import settings

TEXT = retraining_project.PARAMS
ONE = "challengers: [wind_nowcast/knn]"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("wind_nowcast", "wind_baselines", "other"):
        declared = tmp_path / "reports" / name / "dvc.yaml"
        declared.parent.mkdir(parents=True)
        declared.write_text("stages: {}\n")
    return tmp_path


def of(folder, text: str):
    (folder / "params.yaml").write_text(text)
    return settings()


def test_every_experiment_that_competes_is_brought_to_date_and_committed(folder):
    more = "challengers: [wind_nowcast/knn, wind_baselines/kriging, wind_baselines/kalman-a-b-s0]"
    found = of(folder, TEXT.replace(ONE, more))
    assert found.targets == (
        "reports/wind_baselines/dvc.yaml:tabulate@live",
        "reports/wind_nowcast/dvc.yaml:tabulate@live",
    )
    kept = {"reports/wind_baselines/dvc.lock", "reports/wind_baselines/live"}
    assert kept <= set(found.kept) and "reports/wind_nowcast/live" in found.kept


def test_what_the_first_champion_must_beat_is_brought_to_date_too(folder):
    text = TEXT.replace("wind_nowcast/persistence", "other/persistence")
    assert of(folder, text).experiments == ["other", "wind_nowcast"]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("challengers: wind_nowcast/knn", "challengers should be list"),
        ("challengers: [knn]", "names 'knn', expected EXPERIMENT/CELL"),
        ("challengers: [3]", "names 3, expected EXPERIMENT/CELL"),
        ("challenger: knn", "'challengers'"),
        ("challengers: [wind_nowcst/knn]", "no experiment reports/wind_nowcst"),
    ],
)
def test_a_list_that_cannot_be_read_is_the_users_mistake(folder, told, words):
    with pytest.raises(FlowError, match=words) as caught:
        of(folder, TEXT.replace(ONE, told))
    assert caught.value.exit_code == 2
