"""The judgement: one entry for one state of the captures, promoted only what is better beyond
doubt, and every refusal with its reason."""

import shutil
from pathlib import Path

import live_project
import pytest
import torch
from judged_project import SECONDS, STORE

from stages import files
from stages.errors import BusyError, DataError, IntegrityError, ParamsError
from stages.fields.models import build
from stages.params import Drift
from stages.training import store as checkpoints
from stages.winds.retraining import champions, compare, judge, ledger


@pytest.fixture()
def project(template, tmp_path, monkeypatch):
    shutil.copytree(template, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return live_project.settings()


def more(name: str, seconds: int, arguments: dict | None = None, **wind) -> None:
    """New captures: the data up to `seconds`, and the challenger (unless it stays) trained on
    them."""
    live_project.capture(name, live_project.winds(seconds, **wind), seconds)
    live_project.cell("persistence")
    live_project.cell("knn", **(arguments or live_project.BETTER))


def challenger() -> str:
    return files.sha256(live_project.RUNS / "knn/weights.safetensors")


def refused(told: dict, *words: str) -> ledger.Entry:
    """The last entry, which must be a refusal whose reasons hold the words and which leaves the
    champion as it was."""
    entry = ledger.read()[-1]
    assert told["verdict"] == entry["kind"] == "refused" and entry["after"] == entry["before"]
    assert all(word in " ".join(entry["reasons"]) for word in words), entry["reasons"]
    return entry


# --- promotion


def test_the_first_champion_must_beat_the_baseline_and_everything_is_told(project):
    told = judge.run(project)
    (entry,) = ledger.read()
    assert (
        told == files.read_json(".work/retraining/verdict.json")
        and told["due"]
        and told["verdict"] == "promoted"
        and told["number"] == 1
    )
    assert (entry["before"], entry["after"], entry["challenger"]) == (
        "",
        challenger(),
        challenger(),
    ) and entry["against"] == "persistence"
    assert entry["commit"] == live_project.git("rev-parse", "HEAD").strip() and entry["dirty"] == []
    assert entry["evaluation"]["slices"] == 40 and entry["evaluation"]["rows"] == 40 * 70
    assert (
        entry["difference_kn"]["high"] < 0
        and len(entry["reasons"]) == 1
        and "wholly below zero" in entry["reasons"][0]
    )
    assert (
        entry["drift"]["state"] == "steady"
        and files.read_json("data/live/drift.json")["columns"]["u_m_s"]["wasserstein_sd"]["state"]
        == "steady"
    )
    assert champions.current(project).sha256 == challenger() and all(
        isinstance(line, str) for line in entry["recheck"]
    )


def test_the_same_state_is_judged_once(project):
    first = judge.run(project)
    before = ledger.LEDGER.read_bytes()
    again = judge.run(project)
    assert again == first | {"due": False} and ledger.LEDGER.read_bytes() == before


def test_a_first_challenger_that_is_no_better_than_the_baseline_leaves_no_champion(project):
    entry = refused(
        judge.run(live_project.settings(first_against="wind_nowcast/knn")), "not wholly below zero"
    )  # itself
    assert entry["after"] == "" and champions.current(project) is None and not STORE.exists()


def test_a_challenger_that_errs_less_than_the_champion_takes_its_place_and_a_worse_one_does_not(
    project,
):
    more("b.csv", SECONDS + 1200, live_project.WORSE)
    live_project.cell("hour_average")
    assert (
        judge.run(live_project.settings(first_against="wind_nowcast/hour_average"))["verdict"]
        == "promoted"
    )
    weak = champions.current(project).sha256
    more("c.csv", SECONDS + 2400)
    assert judge.run(project)["verdict"] == "promoted"
    strong = champions.current(project).sha256
    entry = ledger.read()[-1]
    assert (entry["before"], entry["after"], entry["against"]) == (
        weak,
        strong,
        "champion",
    ) and strong == challenger()
    more("d.csv", SECONDS + 3600, live_project.WORSE)
    entry = refused(judge.run(project), "wholly above zero")
    assert (
        entry["after"] == strong
        and entry["rmse_component_kn"]["challenger"] > entry["rmse_component_kn"]["against"]
    )
    assert [line["number"] for line in ledger.read()] == [1, 2, 3] and len(
        list(STORE.iterdir())
    ) == 2


def test_both_are_compared_on_slices_that_neither_saw(project):
    """The champion of the first hours saw its own training and validation only; the new test
    slices lie after both."""
    judge.run(project)
    more("b.csv", SECONDS + 1200, live_project.WORSE)
    judge.run(project)
    data, entry = compare.Prepared.open(live_project.PREPARED), ledger.read()[-1]
    assert (
        entry["evaluation"]["seen_until_s"]
        == data.until("val")
        > champions.current(project).reference["selected_until_s"]
    )
    assert entry["evaluation"]["hash"] == compare.evaluation(data, data.until("val")).hash


def test_captures_that_come_out_of_order_leave_too_few_slices_and_decide_nothing(project):
    """A champion of later hours; then older captures: the test slices lie inside what it was
    trained on."""
    more("late.csv", SECONDS + 7200)
    assert judge.run(project)["verdict"] == "promoted"
    more("early.csv", SECONDS, live_project.WORSE)
    entry = refused(judge.run(project), "Undecided: 0 test slices", "fewer than 20")
    assert "difference_kn" not in entry and entry["evaluation"]["slices"] == 0


# --- refusal


def test_too_few_slices_for_the_threshold_decide_nothing(project):
    entry = refused(
        judge.run(live_project.settings(slices_least=41)),
        "Undecided: 40 test slices",
        "fewer than 41",
    )
    assert entry["evaluation"]["slices"] == 40


def test_the_champion_itself_is_no_challenger(project):
    judge.run(project)
    (live_project.RAW / "b.csv").write_text("b")
    seconds = SECONDS
    live_project.capture("b.csv", live_project.winds(seconds), seconds)
    live_project.cell("persistence")
    live_project.cell("knn", **live_project.BETTER)
    entry = refused(judge.run(project), "The challenger is the champion")
    assert entry["after"] == challenger() and len(list(STORE.iterdir())) == 1


@pytest.mark.fault("F20")
def test_a_tracked_file_that_differs_from_the_commit_refuses_and_is_named(project):
    Path("code.py").write_text("2\n")
    entry = refused(judge.run(project), "Tracked files differ from the commit: code.py")
    assert (
        entry["dirty"] == ["code.py"] and entry["difference_kn"]["high"] < 0 and not STORE.exists()
    )


def test_without_a_commit_nothing_is_promoted(project):
    shutil.rmtree(".git")
    entry = refused(judge.run(project), "no commit")
    assert entry["after"] == "" and not STORE.exists()


def test_data_far_from_the_champions_training_refuse_and_the_columns_are_named(project):
    judge.run(project)
    more("b.csv", SECONDS + 1200, shift=80.0)
    entry = refused(judge.run(project), "far from the training rows", "u_m_s wasserstein_sd")
    assert entry["drift"]["state"] == "broken" and entry["drift"]["against"] == entry["before"]
    assert files.read_json("data/live/drift.json")["state"] == "broken"


def test_a_drift_that_only_warns_is_told_and_does_not_refuse(project):
    judge.run(live_project.settings(first_against="wind_nowcast/persistence"))
    ledger.LEDGER.unlink()
    thresholds = {"wasserstein_sd": Drift(warn=1e-9, refuse=100.0)}
    assert judge.run(live_project.settings(drift=thresholds))["verdict"] == "promoted"
    (entry,) = ledger.read()
    assert entry["drift"]["state"] == "drifted" and any(
        line.startswith("u_m_s wasserstein_sd") for line in entry["drift"]["drifted"]
    )


def test_a_margin_that_is_not_reached_refuses(project):
    entry = refused(judge.run(live_project.settings(margin_kn=50.0)), "wholly above -50 kn")
    assert entry["difference_kn"]["high"] < 0 and entry["margin_kn"] == 50.0


def msa_cell(poison: str) -> None:
    """An msa cell in the challenger's place: weights that hold NaN, or finite ones whose answers
    overflow."""
    arguments = {"width": 12, "heads": 2, "layers": 1, "encoder": "shared", "head": "mean"}
    folder = live_project.cell("knn", "msa", **arguments)
    _, meta = checkpoints.load(str(folder / "weights.safetensors"))
    net = build("msa", arguments)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(float("nan") if poison == "nan" else 1e38)
    (folder / "weights.safetensors").write_bytes(checkpoints.dump(net, meta))
    live_project.record("train", [live_project.PREPARED], [folder], "knn")


@pytest.mark.parametrize(
    ("poison", "words"), [("nan", "The challenger cannot be used"), ("overflow", "not finite")]
)
@pytest.mark.fault("F18", "F20")
def test_a_challenger_of_nan_is_refused_and_the_champion_untouched(project, poison, words):
    judge.run(project)
    before, stored = champions.current(project).sha256, sorted(STORE.iterdir())
    more("b.csv", SECONDS + 1200)
    msa_cell(poison)
    refused(judge.run(project), words)
    assert champions.current(project).sha256 == before and sorted(STORE.iterdir()) == stored


def test_a_champion_of_another_lead_decides_nothing(project):
    judge.run(project)
    folder = STORE / champions.current(project).sha256[:12]
    net, meta = checkpoints.load(str(folder / "weights.safetensors"))
    meta["prepared"]["lead_s"] = 1800.0
    cell = Path("other")
    cell.mkdir()
    (cell / "weights.safetensors").write_bytes(checkpoints.dump(net, meta))
    shutil.copy(folder / "history.json", cell)
    kept = champions.keep(
        cell,
        STORE,
        {
            key: value
            for key, value in files.read_json(folder / "reference.json").items()
            if key != "files"
        },
    )
    ledger.append(
        ledger.read()[0]
        | {
            "case": "by hand",
            "raw": "x",
            "after": files.sha256(cell / "weights.safetensors"),
            "reference": files.sha256(kept / "reference.json"),
        }
    )
    more("b.csv", SECONDS + 1200, live_project.WORSE)
    entry = refused(judge.run(project), "trained for lead_s 1800.0", "cannot be compared")
    assert "difference_kn" not in entry


# --- what does not belong together


def touched(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


STALE = {
    "prepared rows of another run": lambda: touched(live_project.PREPARED / "rows.parquet"),
    "other weights than recorded": lambda: live_project.RUNS.joinpath(
        "knn/weights.safetensors"
    ).write_bytes(b"x"),
    "another baseline than recorded": lambda: touched(
        live_project.RUNS / "persistence/weights.safetensors"
    ),
    "decoded winds of another run": lambda: touched(live_project.DECODED / "winds.parquet"),
    "an edited capture": lambda: (live_project.RAW / "20260115T060000Z-aaaa.csv").write_text(
        "edited"
    ),
    "a capture that is not decoded yet": lambda: (live_project.RAW / "b.csv").write_text("b"),
    "a cell that is gone": lambda: shutil.rmtree(live_project.RUNS / "knn"),
}


@pytest.mark.parametrize("case", STALE)
def test_a_challenger_that_does_not_come_from_these_captures_is_not_judged(project, case):
    STALE[case]()
    with pytest.raises(IntegrityError, match="run the profile `live` again"):
        judge.run(project)
    assert not ledger.LEDGER.exists() and not STORE.exists()


def test_a_broken_ledger_a_lost_champion_and_a_missing_record_stop_the_judgement(project):
    judge.run(project)
    more("b.csv", SECONDS + 1200, live_project.WORSE)
    before = ledger.LEDGER.read_bytes()
    record = judge.records.location(
        "train", "live", "captures", experiment="wind_nowcast", cell="knn"
    )
    record.rename("aside.json")
    with pytest.raises(DataError, match="a file is missing"):
        judge.run(project)
    Path("aside.json").rename(record)
    STORE.rename("data/live/elsewhere")
    with pytest.raises(IntegrityError, match="dvc pull data/live/champions"):
        judge.run(project)
    Path("data/live/elsewhere").rename(STORE)
    ledger.LEDGER.write_bytes(before.replace(b"promoted", b"Promoted"))
    with pytest.raises(IntegrityError, match="chain is broken"):
        judge.run(project)
    ledger.LEDGER.write_bytes(before)
    refused(judge.run(project))


def test_an_unknown_statistic_is_told_before_any_work(project):
    with pytest.raises(ParamsError, match="no such statistic"):
        judge.run(live_project.settings(drift={"kuiper": Drift(warn=1.0, refuse=2.0)}))
    assert not Path("data/live/drift.json").exists()


@pytest.mark.fault("F7")
def test_one_judges_at_a_time(project):
    with files.guard("retraining-judge"), pytest.raises(BusyError):
        judge.run(project)


def test_the_round_of_intake_is_told_when_it_is_of_this_state(project):
    raw = judge.state_of(live_project.RAW)
    accepted = [{"name": "a.csv", "sha256": "1", "lines": 5}]
    bad = [{"name": "b.csv", "sha256": "2", "reasons": ["no frame"]}]
    report = {
        "accepted": accepted,
        "seen": [],
        "quarantined": bad,
        "left": [],
        "captures": 1,
        "span_s": 5.0,
        "raw": raw,
    }
    files.write_json(".work/retraining/intake.json", report)
    told = {"count": 1, "accepted": [{"name": "a.csv", "sha256": "1"}], "quarantined": bad}
    assert judge.captures(raw) == told and judge.captures("another") == {}
    judge.run(project)
    assert ledger.read()[0]["captures"] == told
