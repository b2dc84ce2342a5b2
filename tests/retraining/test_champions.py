"""The store of champions: written once, verified before any use, and rolled back only to what
can be verified."""

import os
import shutil
from pathlib import Path

import live_project
import pytest
import torch

from stages import cli, files, params
from stages.errors import BusyError, InputError, IntegrityError
from stages.fields.models import build
from stages.training import store as checkpoints
from stages.winds.nowcast import nowcast
from stages.winds.retraining import champions, judge, ledger

STORE = Path("data/live/champions")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A project with two promotions: first the mean of 64 reports over an average of the hour,
    then that of 8."""
    root = tmp_path_factory.mktemp("champions")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        live_project.build_first(7200, **live_project.WORSE)
        live_project.cell("hour_average")
        for k, (name, arguments) in enumerate(
            (("a", live_project.WORSE), ("b", live_project.BETTER))
        ):
            live_project.capture(
                f"{name}.csv", live_project.winds(7200 + 1200 * k), 7200 + 1200 * k
            )
            for other in ("hour_average", "persistence"):
                live_project.cell(other)
            live_project.cell("knn", **arguments)
            told = judge.run(live_project.settings(first_against="wind_nowcast/hour_average"))
            assert told["verdict"] == "promoted", told
    return root


@pytest.fixture()
def project(template, tmp_path, monkeypatch):
    shutil.copytree(template, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return live_project.settings(first_against="wind_nowcast/hour_average")


def names() -> tuple[str, str]:
    """The first champion's hash and the second's."""
    first, second = (entry["after"] for entry in ledger.read()[:2])
    return first, second


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- the store


def test_a_champion_lies_under_its_hash_with_its_cell_and_its_reference(project):
    for sha256 in names():
        folder = STORE / sha256[:12]
        assert sorted(path.name for path in folder.iterdir()) == [
            "history.json",
            "reference.json",
            "weights.safetensors",
        ]
        assert files.sha256(folder / "weights.safetensors") == sha256
        told = files.read_json(folder / "reference.json")
        assert told["files"] == {
            name: files.sha256(folder / name) for name in ("weights.safetensors", "history.json")
        }
    assert (STORE / names()[1][:12] / "weights.safetensors").read_bytes() == (
        live_project.RUNS / "knn/weights.safetensors"
    ).read_bytes()
    meta = files.read_json(live_project.PREPARED / "prepared.json")
    assert told["trained_until_s"] == meta["t0_s"] + 60 * (max(meta["slices"]["train"]) + 1)
    assert told["selected_until_s"] == meta["t0_s"] + 60 * (max(meta["slices"]["val"]) + 1)
    assert (
        told["commit"] == live_project.git("rev-parse", "HEAD").strip()
        and told["raw"] == ledger.read()[1]["raw"]
    )


def test_a_champion_that_is_kept_again_stays_byte_for_byte(project):
    before = contents(STORE)
    folder = champions.keep(live_project.RUNS / "knn", STORE, {"other": "reference"})
    assert folder.name == names()[1][:12] and contents(STORE) == before


def test_another_cell_under_the_same_name_is_refused(project):
    (live_project.RUNS / "knn/history.json").write_text("{}\n")
    with pytest.raises(IntegrityError, match="another cell under this name"):
        champions.keep(live_project.RUNS / "knn", STORE, {})


def damage_weights(folder: Path) -> None:
    path = folder / "weights.safetensors"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def forge(folder: Path) -> None:
    """Other weights, with a reference that names them."""
    net, meta = checkpoints.load(str(folder / "weights.safetensors"))
    net.neighbours.fill_(3)
    (folder / "weights.safetensors").write_bytes(checkpoints.dump(net, meta))
    told = files.read_json(folder / "reference.json")
    told["files"]["weights.safetensors"] = files.sha256(folder / "weights.safetensors")
    files.write_json(folder / "reference.json", told)


def trained_less(folder: Path) -> None:
    """A reference that pretends the champion saw less than it did."""
    told = files.read_json(folder / "reference.json")
    files.write_json(folder / "reference.json", told | {"trained_until_s": 0.0})


DAMAGES = {
    "a flipped bit, the time stamp as it was": damage_weights,
    "other weights and a reference that fits them": forge,
    "an edited reference": trained_less,
    "another history": lambda folder: (folder / "history.json").write_text("{}\n"),
    "no weights": lambda folder: (folder / "weights.safetensors").unlink(),
    "no reference": lambda folder: (folder / "reference.json").unlink(),
    "no folder": shutil.rmtree,
}


@pytest.mark.parametrize("case", DAMAGES)
@pytest.mark.fault("F10")
def test_a_champion_whose_bytes_are_not_those_promoted_is_used_by_nobody(project, case):
    first, second = names()
    DAMAGES[case](STORE / first[:12])
    assert champions.current(project).sha256 == second  # the other one is whole
    before = ledger.LEDGER.read_bytes()
    for use in (
        lambda: champions.rollback(project),
        lambda: champions.rollback(project, 1),
        lambda: champions.verified(project),
    ):
        with pytest.raises(IntegrityError, match="dvc pull data/live/champions"):
            use()
    assert ledger.LEDGER.read_bytes() == before
    DAMAGES[case](STORE / second[:12])
    for use in (champions.current, champions.describe, champions.folder_now):
        with pytest.raises(IntegrityError, match="dvc pull data/live/champions"):
            use(project)


@pytest.mark.fault("F13")
def test_weights_that_are_no_model_are_refused_even_where_all_hashes_agree(project, tmp_path):
    _net, meta = checkpoints.load(str(live_project.RUNS / "knn/weights.safetensors"))
    for name, content in (("nan", None), ("pickle", b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.")):
        cell = tmp_path / name
        cell.mkdir()
        if content is None:
            poisoned = build(
                "msa", {"width": 12, "heads": 2, "layers": 1, "encoder": "shared", "head": "mean"}
            )
            with torch.no_grad():
                next(poisoned.parameters()).fill_(float("nan"))
            content = checkpoints.dump(
                poisoned,
                meta
                | {
                    "model": "msa",
                    "arguments": {
                        "width": 12,
                        "heads": 2,
                        "layers": 1,
                        "encoder": "shared",
                        "head": "mean",
                    },
                },
            )
        (cell / "weights.safetensors").write_bytes(content)
        files.write_json(cell / "history.json", {})
        folder = champions.keep(cell, STORE, {})
        with pytest.raises(IntegrityError, match="cannot be loaded"):
            champions.verify(
                STORE,
                files.sha256(cell / "weights.safetensors"),
                files.sha256(folder / "reference.json"),
            )
    assert not Path("owned").exists()


# --- rollback


def test_a_rollback_brings_the_one_before_back_and_is_an_entry(project):
    first, second = names()
    entry = champions.rollback(project)
    assert (entry["number"], entry["kind"], entry["before"], entry["after"]) == (
        3,
        "rollback",
        second,
        first,
    )
    assert first[:12] in entry["reasons"][0] and champions.current(project).sha256 == first
    assert champions.current(project).reference["files"]["weights.safetensors"] == first
    assert "ledger entry 3, rollback" in champions.describe(
        project
    ) and "ledger entry 1, commit" in champions.describe(project)
    with pytest.raises(InputError, match="the first there was"):
        champions.rollback(project)
    assert (
        champions.rollback(project, 2)["after"] == second
        and champions.current(project).sha256 == second
    )
    assert (
        champions.rollback(project, 3)["after"] == first
    )  # an entry stands for the champion after it
    assert (
        len(ledger.read()) == 5
        and "(entries: 5)" in (told := champions.verified(project))
        and "loaded: 2)" in told
    )


def test_no_rollback_while_a_challenger_is_judged(project):
    before = ledger.LEDGER.read_bytes()
    with files.guard("retraining-judge"), pytest.raises(BusyError):
        champions.rollback(project)
    assert ledger.LEDGER.read_bytes() == before


@pytest.mark.parametrize(
    ("number", "words"),
    [(2, "is the champion now"), (0, "no such entry"), (9, "no such entry"), (-1, "no such entry")],
)
def test_a_rollback_to_nothing_else_is_the_users_mistake(project, number, words):
    before = ledger.LEDGER.read_bytes()
    with pytest.raises(InputError, match=words):
        champions.rollback(project, number)
    assert ledger.LEDGER.read_bytes() == before


def test_without_a_champion_there_is_nothing_to_roll_back_or_to_ask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = live_project.settings()
    assert champions.current(settings) is None and champions.describe(settings) is None
    with pytest.raises(InputError, match="no champion to roll back"):
        champions.rollback(settings)
    with pytest.raises(InputError, match="no champion yet"):
        champions.folder_now(settings)


# --- the verbs


def verb(monkeypatch, settings, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["tradewind", *arguments])
    monkeypatch.setattr(params, "load", lambda: settings)
    return cli.main()


def test_the_verbs_tell_who_is_champion_by_which_numbers_and_go_back(project, monkeypatch, capsys):
    first, second = names()
    won = ledger.read()[1]
    assert verb(monkeypatch, project, "champion") == 0
    out = capsys.readouterr().out
    assert (
        second in out
        and f"{won['rmse_component_kn']['challenger']:.2f} kn" in out
        and f"on the same {won['evaluation']['slices']} slices" in out
    )
    assert verb(monkeypatch, project, "ledger", "--last", "1", "--verify") == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4 and out[2].startswith("2") and "unbroken (entries: 2)" in out[3]
    assert verb(monkeypatch, project, "rollback") == 0
    assert (
        "Ledger entry 3" in capsys.readouterr().out and champions.current(project).sha256 == first
    )
    assert (
        verb(monkeypatch, project, "rollback", "1") == 2
        and verb(monkeypatch, project, "ledger", "--last", "0") == 2
    )
    damage_weights(STORE / first[:12])
    assert [
        verb(monkeypatch, project, *words)
        for words in (("champion",), ("ledger", "--verify"), ("ledger",))
    ] == [1, 1, 0]


def test_where_nobody_was_promoted_the_verb_says_so_and_ends_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").touch()  # a clone's root
    settings = live_project.settings()
    assert verb(monkeypatch, settings, "champion") == 1
    assert capsys.readouterr().err == "there is no champion yet: nothing was promoted\n"
    assert verb(monkeypatch, settings, "ledger", "--verify") == 0
    assert "the ledger is empty" in capsys.readouterr().out
    assert (
        verb(
            monkeypatch,
            settings,
            "nowcast",
            "--model",
            "champion",
            "--context",
            "x.csv",
            "--at",
            "46,7,30000,0",
        )
        == 2
    )


def test_a_nowcast_asks_the_champion_and_tells_the_error_it_won_by(project, monkeypatch, capsys):
    wind = live_project.DECODED / "winds.parquet"
    at = "46.5,7.0,25000,2026-01-15T07:08:00Z"
    assert (
        verb(
            monkeypatch,
            project,
            "nowcast",
            "--model",
            "champion",
            "--context",
            str(wind),
            "--at",
            at,
        )
        == 0
    )
    out = capsys.readouterr().out
    assert names()[1][:12] in out and "its RMSE on the test minutes" in out
    (by_hand,) = nowcast.nowcast(wind, at=[at], model=live_project.RUNS / "knn", settings=project)
    (champion,) = nowcast.nowcast(
        wind, at=[at], model=champions.folder_now(project), settings=project
    )
    assert (champion.u_m_s, champion.v_m_s) == (by_hand.u_m_s, by_hand.v_m_s)
    told = files.read_json(STORE / names()[1][:12] / "reference.json")["measured"]
    assert champion.spread_m_s == (told["rmse_east_m_s"]["value"], told["rmse_north_m_s"]["value"])
