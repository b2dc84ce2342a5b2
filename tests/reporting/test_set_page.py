"""The experiments on sets of points on the page, and the audit of their numbers."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import sets_project
import stage_runs
from page_reader import Page, read, rows_of
from PIL import Image
from results_project import PROFILE
from sets_project import COPIES, FAILURES, FIELDS, POISSON

from stages import files
from stages.audit import raws, rerun
from stages.audit.chain import SOURCES, Metric
from stages.fields import figures as set_figures
from stages.fields import page, tabulate

POISSON_RESULTS = f"results on poisson ({FIELDS}, {PROFILE})"


def plain(home: Path, prepared: Path, arms: dict, cells: dict, printed: dict, more=None) -> None:
    """In place of set_figures.draw: pictures of a few pixels, each its own."""
    names = [
        f"{dataset}-{kind}"
        for dataset in sorted({name.split("/")[0] for name in arms})
        for kind in ("learning", "example")
    ]
    with files.atomic_folder(home / "figures") as folder:
        for name in names + (["copying"] if home.parts[1] == FAILURES else []):
            Image.frombytes("RGB", (8, 4), f"{home.parts[1]} {name}".encode().ljust(96)[:96]).save(
                folder / f"{name}.png"
            )


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict[str, Page]:
    """The pages of both experiments, figures and all; the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("set_page")
        patch.chdir(root)
        sets_project.build(root)
        patch.setattr(set_figures, "draw", plain)
        for experiment in (FIELDS, FAILURES):
            stage_runs.tabulate(tabulate, experiment, PROFILE)
            for dataset in ("poisson", "darcy", "copies", "sines_5"):
                home = Path("reports", experiment, PROFILE, "evaluated", dataset, "metrics.json")
                if home.exists():
                    sets_project.stage_records(experiment, dataset, files.read_json(home)["cells"])
            stage_runs.write_pages(page, experiment, PROFILE)
        yield {name: read(f"{name}/{PROFILE}/page.html") for name in (FIELDS, FAILURES)}


def test_the_pages_are_well_formed_and_have_a_section_a_data_set(seen):
    for name, dataset in ((FIELDS, "poisson"), (FAILURES, "copies")):
        one = seen[name]
        assert one.problems == [] and len(one.ids) == len(set(one.ids))
        assert {f"{name}-{PROFILE}", f"{name}-{PROFILE}-{dataset}"} <= set(one.ids)


def test_every_arm_is_there_with_its_companions(seen):
    found = {row["model"]: row for row in rows_of(seen[FIELDS], POISSON_RESULTS)}
    assert set(found) == set(POISSON)
    assert (
        found["msa-shared-20k"]["printed MSE, validation"] == "0.00700 ± 0.0004 (thesis C.2)"
        and found["msa-shared-20k"]["of the mean's MSE [%]"] == "2.0"
    )
    assert {
        row["model"] for row in rows_of(seen[FAILURES], f"copying ({FAILURES}, {PROFILE})")
    } == set(COPIES)
    assert "the caption prints the inverse ratio" in seen[FIELDS].text


def test_every_claim_is_there_with_its_verdict(seen):
    for experiment in (FIELDS, FAILURES):
        claims = files.read_json(Path("reports", experiment, PROFILE, "claims.json"), list)
        rows = [
            row
            for row in rows_of(seen[experiment], "the claims ledger")
            if row["experiment"] == experiment
        ]
        assert [(row["id"], row["verdict"]) for row in rows] == [
            (c["id"], c["verdict"]) for c in claims
        ]


def test_every_stored_figure_is_linked_with_words(seen):
    for experiment, count in ((FIELDS, 4), (FAILURES, 5)):
        home = Path("reports", experiment, PROFILE)
        stored = sorted(file.relative_to(home).as_posix() for file in home.glob("figures/*.png"))
        figures = seen[experiment].figures
        assert sorted(one["src"] for one in figures) == stored and len(stored) == count
        assert all(len(one["alt"]) > 15 for one in figures)


def test_what_was_not_timed_says_how_to_time_it_and_belongs_to_one_experiment(seen):
    said = f"(make bench-fields PROFILE={PROFILE})"
    assert [seen[name].text.count(said) for name in (FIELDS, FAILURES)] == [1, 0]
    ids = {one for page in seen.values() for one in page.ids}
    assert f"{FIELDS}-{PROFILE}-costs" in ids and f"{FAILURES}-{PROFILE}-costs" not in ids


def test_lineage_leads_from_raw_bytes_over_the_gate_to_the_table_and_decodes_nothing(seen):
    text = Path("reports", FIELDS, PROFILE, "page.html").read_text()
    svg = re.search(r'<svg [^>]*aria-label="lineage of darcy".*?</svg>', text, re.DOTALL)[0]
    assert re.findall(r'class="title">([^<]+)<', svg) == [
        "raw",
        "prepared",
        "gate",
        "trained",
        "evaluated",
        "tables",
    ]


def test_the_readme_has_both_experiments(seen):
    text = Path("reports/README.md").read_text()
    assert (
        f"## {FIELDS}, profile {PROFILE}" in text
        and f"## {FAILURES}, profile {PROFILE}" in text
        and "### poisson" in text
    )


# --- the audit of a number on sets


def case(metric: str, cells: tuple[str, ...], trained: bool = True):
    """What rerun reads of a Case."""
    nodes = [SimpleNamespace(stage="evaluate", error="", record={"environment": {"device": "cpu"}})]
    train = [SimpleNamespace(stage="train", error="", record={})] if trained else []
    return SimpleNamespace(
        metric=Metric.parse(metric),
        chain=SimpleNamespace(nodes=nodes + train, cells=cells),
        root=Path("."),
        locks=SimpleNamespace(producer=lambda home: SimpleNamespace(deps=("data", "runs"))),
    )


@pytest.fixture
def laid(monkeypatch):
    """A stand-in for the project laid out: a cell's number is its name's length, with what is
    added to it, a companion's 0.5. It keeps which paths were linked."""

    def cell(command, name):
        value = 0.5 if name == "mean" else float(len(name) + laid.more)
        return {
            "metrics": {"mse": {"value": value, "unit": "1", "n": 3}},
            "probes": {"latents": {"effective": {"value": 2 * value}}},
        }

    laid = SimpleNamespace(more=0, linked=[], cell=cell)
    laid.link = laid.linked.append
    monkeypatch.setattr(rerun.commands, "command", lambda locks, home: home)
    return laid


def test_a_number_of_a_cell_an_arm_and_a_probe_is_made_again_from_its_checkpoints(laid):
    one, name = ("msa-shared-20k-s0",), f"{FIELDS}/{PROFILE}/poisson"
    mse = case(f"{name}/msa-shared-20k-s0/mse", one)
    assert rerun.recomputed(mse, laid)["value"] == 17.0
    probed = case(f"{name}/msa-shared-20k-s0/probes/latents/effective", one)
    assert rerun.recomputed(probed, laid)["value"] == 34.0
    both = case(f"{name}/msa-shared-20k/mse", (*one, "msa-shared-20k-s10"))
    assert rerun.recomputed(both, laid)["mean"] == 17.5
    assert {*laid.linked} == {"data", "runs"}
    laid.more = 1
    assert rerun.recomputed(mse, laid)["value"] == 18.0


def test_a_companion_that_nothing_trained_is_measured_again(laid):
    mean = case(f"{FIELDS}/{PROFILE}/poisson/mean/mse", ("mean",), trained=False)
    assert rerun.recomputed(mean, laid)["value"] == 0.5


def test_files_pinned_by_a_listing_are_held_to_it(tmp_path):
    (tmp_path / "data/sources").mkdir(parents=True)
    (tmp_path / "data/sources/rooms.txt").write_text(
        f"{'a' * 64} 120 0-X.npy\n{'b' * 64} 60 desc_0 of 1.json\n"
    )
    given = SimpleNamespace(
        root=tmp_path,
        params={
            "datasets": {
                "rooms": {"listed": {"listing": "data/sources/rooms.txt"}},
                "hour": {"files": {"wind.csv": {"sha256": "c" * 64}}},
            }
        },
    )
    assert raws.pins(given, "rooms") == {"0-X.npy": "a" * 64, "desc_0 of 1.json": "b" * 64}
    assert raws.pins(given, "hour") == {"wind.csv": "c" * 64} and raws.pins(given, "none") == {}
    assert SOURCES.fullmatch("data/sources/rooms.txt") and not SOURCES.fullmatch(
        "data/mini/raw/rooms/0-X.npy"
    )
