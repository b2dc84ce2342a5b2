"""`tradewind verify --all` passes an honest project, and one flipped byte of any tracked object
fails it by name with all that rests on it.

The small project is built once; each test leaves it as it was. Its table and claims are a few words
of its own, which stand in for the real ones; those of this repository are derived again from its
own metrics.json.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import audit_project
import pytest
from audit_project import DATA, EVALUATED, REPORTS, RUN, TABLE, edit, flip
from cached import object_of

from stages import files
from stages.audit import absent, commands, derive, hashes, history, laid
from stages.audit import everything as whole
from stages.audit.chain import Ledger
from stages.audit.everything import everything, report_text
from stages.audit.impact import all_chains, impact
from stages.errors import DataError
from stages.tables import parts

HOME = Path(__file__).parents[2]
ALL = {
    f"{experiment}/mini/simulated/{cell}/{name}"
    for experiment, cells in audit_project.EXPERIMENTS.items()
    for cell in cells
    for name in ("rmse_component_kn", "nse")
}
OF_CELL = {metric for metric in ALL if "/msa-shared-5k-s0/" in metric}
OF_EXPERIMENT = {metric for metric in ALL if metric.startswith("wind_nowcast")}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return audit_project.build(
        tmp_path_factory.mktemp("whole"), without=("data/mini/prepared/other/rows.parquet",)
    )  # a file of no record


@pytest.fixture
def project(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "project", symlinks=True))


def failing(found) -> set[str]:
    """The paths that fail."""
    return {problem.path for problem in found.problems if problem.verdict == "FAIL"}


def test_an_honest_project_passes_and_each_file_is_hashed_once(project, monkeypatch):
    read = []
    true = hashes.digests
    monkeypatch.setattr(
        "stages.audit.sweep.digests",
        lambda file, *how, **named: read.append(file.stat().st_ino) or true(file, *how, **named),
    )
    monkeypatch.setattr(
        hashes,
        "digests",
        lambda file, *how, **named: read.append(file.stat().st_ino) or true(file, *how, **named),
    )
    found = everything(project)
    assert (found.verdict, found.exit_code, found.problems) == ("PASS", 0, [])
    small = {
        file.stat().st_ino
        for pattern in ("stages/**/*.py", "constraints.txt", ".dvc/cache/**/*.dir")
        for file in project.glob(pattern)
    }
    data = [number for number in read if number not in small]
    assert len(data) == len(set(data)) and len(data) > 50
    text = report_text(found)
    assert (
        f"{found.records} run records, 2 tables" in text
        and "MB hashed" in text
        and text.endswith("PASS")
    )


FLIPS = [
    (f"{DATA}/raw/simulated/frames_01.csv", ALL),
    (f"{DATA}/raw/simulated/truth.parquet", set()),
    (f"{DATA}/decoded/simulated/winds.parquet", ALL),
    (f"{DATA}/validated/simulated.json", ALL),
    (f"{DATA}/prepared/simulated/rows.parquet", ALL),
    (f"{RUN}/weights.safetensors", OF_CELL),
    (EVALUATED, OF_EXPERIMENT),
    (f"{REPORTS}/evaluated/simulated/predictions-msa-shared-5k-s0.parquet", OF_CELL),
    (TABLE, OF_EXPERIMENT),
    (f"{REPORTS}/table.md", OF_EXPERIMENT),
    (f"{REPORTS}/claims.json", OF_EXPERIMENT),
    (f"{REPORTS}/figures/map.png", OF_EXPERIMENT),
    (f"{DATA}/records/simulated.decode.json", ALL),
    (f"{REPORTS}/records/simulated.msa-shared-5k-s0.train.json", OF_CELL),
    ("data/published/thesis_table_1_2.csv", ALL),
    ("reports/sensor_noise/companions.csv", ALL - OF_EXPERIMENT),
]


@pytest.mark.parametrize(
    "path, resting, at", [(*case, (0, -3)[number % 2]) for number, case in enumerate(FLIPS)]
)
def test_a_flipped_byte_fails_by_name_with_all_that_rests_on_it(project, path, resting, at):
    flip(project / path, at)
    found = everything(project)
    assert (found.verdict, found.exit_code) == ("FAIL", 1) and path in failing(found)
    assert set(found.resting[path]) == resting
    text = report_text(found)
    assert f"FAIL: {path}" in text and all(metric.rpartition("/")[0] in text for metric in resting)


@pytest.mark.parametrize(
    "path", [f"{DATA}/raw/simulated/frames_01.csv", f"{RUN}/weights.safetensors"]
)
@pytest.mark.parametrize("here", [True, False])
def test_a_flipped_cache_object_fails_whether_or_not_the_file_is_here(project, path, here):
    damaged = object_of(project, path)
    flip(damaged)
    if not here:
        (project / path).unlink()
    found = everything(project)
    assert found.verdict == "FAIL" and path in failing(found)
    assert set(found.resting[path]) == (ALL if "raw" in path else OF_CELL)
    assert damaged.name in report_text(found)


def test_a_flipped_manifest_fails_by_the_folder_it_lists(project):
    folder = f"{DATA}/prepared/simulated"
    flip(hashes.Cache(project).path(hashes.Locks(project).producer(folder).outs[folder]))
    found = everything(project)
    assert (
        found.verdict == "FAIL" and folder in failing(found) and set(found.resting[folder]) == ALL
    )


def test_a_damaged_object_of_earlier_results_fails_though_nothing_of_today_rests_on_it(project):
    place = hashes.Cache(project).path("ab" + "0" * 30)
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"not what its name says")
    found = everything(project)
    path = place.relative_to(project).as_posix()
    assert failing(found) == {path} and found.resting[path] == []


@pytest.mark.parametrize(
    "name, old, new, line",
    [
        ("claims.json", "true", "false", "the evaluations: line 4"),
        ("table.md", "a table", "A table", "the evaluations: line 1"),
        ("metrics.json", '"n": 10', '"n": 12', "the evaluations: line"),
    ],
)
def test_what_was_tabulated_is_derived_again_though_record_lock_and_commit_agree_with_it(
    project, name, old, new, line
):
    edit(project / REPORTS / name, old, new)
    audit_project.agree(project)
    found = everything(project)
    assert failing(found) == {f"{REPORTS}/{name}"}
    assert line in report_text(found) and set(found.resting[f"{REPORTS}/{name}"]) == OF_EXPERIMENT


def test_a_figure_that_no_record_names_and_a_table_without_its_evaluations_fail(project):
    (project / REPORTS / "figures/another.svg").write_text("<svg/>")
    record = project / REPORTS / "records/tabulate.json"
    content = json.loads(record.read_text())
    del content["inputs"][EVALUATED]
    record.write_text(json.dumps(content))
    text = report_text(everything(project))
    assert f"FAIL: {REPORTS}/figures/another.svg" in text and "put there by hand?" in text
    assert f"does not name {EVALUATED}" in text


def test_a_page_made_from_other_files_is_stale(project):
    table = "reports/sensor_noise/mini/table.md"
    edit(project / "dvc.lock", hashes.Bytes(project).md5(table), "a" * 32)
    audit_project.commit(project)
    found = everything(project)
    assert f"report read {table}" in report_text(found) and failing(found) == {"reports/index.html"}


def test_a_broken_promotion_ledger_fails(project):
    (project / "reports/ledger.jsonl").write_text("{}\n")
    assert failing(everything(project)) == {"reports/ledger.jsonl"}


def test_with_a_history_that_is_cut_off_a_ledger_that_is_not_here_is_not_passed_over(project):
    (project / "NOTE.md").write_text("Another commit.\n")
    audit_project.commit(project)
    assert everything(project).verdict == "PASS"
    head = str(history.git(project, "rev-parse", "HEAD")).strip()
    (project / ".git/shallow").write_text(f"{head}\n")
    found = everything(project)
    assert [one.path for one in found.problems] == ["reports/ledger.jsonl"]
    assert found.verdict == "INCONCLUSIVE" and f"cut off here at {head[:12]}" in report_text(found)


def clear(project: Path) -> None:
    """Take every cached output out of the workspace."""
    for place in (
        "data/mini/raw",
        "data/mini/decoded",
        "data/mini/prepared",
        f"{REPORTS}/runs",
        f"{REPORTS}/evaluated",
        "reports/sensor_noise/mini/runs",
        "reports/sensor_noise/mini/evaluated",
    ):
        shutil.rmtree(project / place / "simulated")


def test_outputs_in_the_cache_alone_are_verified_there(project):
    clear(project)
    found = everything(project)
    assert found.verdict == "PASS"
    flip(
        next(
            file
            for file in (project / ".dvc/cache/files/md5").glob("??/*")
            if file.read_bytes().startswith(b"field knn")
        )
    )
    assert f"{REPORTS}/evaluated/simulated/field-knn.parquet" in failing(everything(project))


def test_a_fresh_clone_is_inconclusive_with_a_count_and_a_command(project):
    clear(project)
    shutil.rmtree(project / ".dvc/cache")
    found = everything(project)
    assert (found.verdict, found.exit_code, len(found.problems)) == ("INCONCLUSIVE", 3, 1)
    text = report_text(found)
    assert (
        "profile mini" in text
        and "neither on disk nor in DVC's cache" in text
        and "flows.profiles mini -- dvc pull" in text
    )
    flip(project / REPORTS / "figures/map.png")
    assert everything(project).verdict == "FAIL"


def test_a_profile_that_is_not_run_here_and_of_which_nothing_is_here_is_but_a_note(tmp_path):
    files = [
        "data/sample/raw/x/a.csv",
        "reports/wind_nowcast/sample/runs/x/knn/weights.safetensors",
        "data/mini/raw/x/a.csv",
        "reports/wind_nowcast/sample/metrics.json",
    ]
    case = SimpleNamespace(
        root=tmp_path,
        params={"run": {"profile": "mini"}},
        chain=SimpleNamespace(files=dict.fromkeys(files)),
    )
    (tmp_path / files[3]).parent.mkdir(parents=True)
    (tmp_path / files[3]).write_text("{}")  # in git, so in every clone
    assert absent.elsewhere(case, "sample") and not absent.elsewhere(case, "mini")
    note = whole.Problem("NOTE", "profile sample", "nothing is known of it")
    assert whole.Verified([note]).verdict == "PASS" and "NOTE: profile sample" in report_text(
        whole.Verified([note])
    )
    assert whole.Verified([note, whole.Problem("INCONCLUSIVE", "profile mini", "")]).exit_code == 3
    (tmp_path / files[1]).parent.mkdir(parents=True)
    (tmp_path / files[1]).write_text("one cell is here")
    assert not absent.elsewhere(case, "sample")


def test_an_empty_folder_is_no_project(tmp_path):
    with pytest.raises(DataError, match="nothing to verify"):
        everything(tmp_path)


def test_a_file_that_cannot_be_read_is_named(project, monkeypatch):
    broken, true = project / RUN / "weights.safetensors", Path.open

    def opened(file, *options, **named):
        if file == broken:
            raise OSError(5, "Input/output error")
        return true(file, *options, **named)

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(DataError, match="Input/output error") as caught:
        everything(project)
    assert caught.value.where == str(broken)


def test_what_rests_on_a_table_that_is_no_longer_readable_is_told_from_the_commit(project):
    (project / TABLE).write_text("{")
    assert set(found := everything(project).resting[TABLE]) == OF_EXPERIMENT and found == impact(
        TABLE, project
    )
    assert {metric for _, metrics in all_chains(Ledger(project)) for metric in metrics} == ALL


TABLES = sorted(file.relative_to(HOME).as_posix() for file in HOME.glob("reports/*/*/metrics.json"))


def again(root: Path, path: str, folder: Path) -> list:
    """What of a real table is not what is derived from its metrics.json; skipped where the lock
    is of an earlier command."""
    locks = hashes.Locks(root, path.split("/")[1])
    try:
        commands.command(locks, path)
    except commands.Undeclared:
        pytest.skip(f"{path} was tabulated by another command: run `dvc repro`")
    folder.mkdir()
    return list(derive.derived(locks, laid.Laid(root, folder), path, False))


@pytest.mark.parametrize("path", TABLES)
def test_every_published_table_of_this_repository_is_derived_again_to_the_byte(path, tmp_path):
    assert [problem.text for problem in again(HOME, path, tmp_path / "laid")] == []


@pytest.fixture
def fields(tmp_path):
    """The published results of `sparse_fields` and the printed values, copied."""
    root = tmp_path / "root"
    shutil.copytree(HOME / "data/published", root / "data/published")
    shutil.copytree(
        HOME / "reports/sparse_fields",
        root / "reports/sparse_fields",
        ignore=shutil.ignore_patterns("runs", "evaluated"),
    )
    for name in ("stages", "params.yaml", "constraints.txt", "dvc.yaml", "dvc.lock"):
        (root / name).symlink_to(HOME / name)
    return root


def test_an_edited_cell_of_a_real_table_is_told_by_its_line(fields, tmp_path):
    table = fields / "reports/sparse_fields/mini/table.md"
    number, line = next(
        (n, line)
        for n, line in enumerate(table.read_text().split("\n"), 1)
        if line.startswith("| mean")
    )
    edit(table, line, line.replace("0.", "9.", 1))
    problems = again(fields, "reports/sparse_fields/mini/metrics.json", tmp_path / "laid")
    assert [problem.path for problem in problems] == [
        "reports/sparse_fields/mini/table.md"
    ] and f"line {number} is" in problems[0].text


def test_an_edited_printed_value_no_longer_gives_the_table(fields, tmp_path):
    edit(fields / "data/published/thesis_table_3_2.csv", "0.0259", "0.9259")
    problems = again(fields, "reports/sparse_fields/mini/metrics.json", tmp_path / "laid")
    assert [problem.path for problem in problems] == ["reports/sparse_fields/mini/table.md"]
    assert "0.0259" in problems[0].text and "0.926" in problems[0].text


def test_an_arm_that_is_not_its_cells_fails_without_the_evaluations(fields, tmp_path):
    table = "reports/sparse_fields/mini/metrics.json"
    content = parts.read((fields / table).parent)
    next(iter(content["arms"].values()))["seeds"] = 99
    (fields / table).write_text(files.json_text(content))
    assert table in {problem.path for problem in again(fields, table, tmp_path / "laid")}


@pytest.mark.skipif(
    parts.lacking(HOME / "reports/any_order/mini"),
    reason="its breakdowns are not here: `dvc repro`",
)
def test_impact_names_numbers_of_cells_that_have_only_deeper_ones():
    deep = [
        name
        for name in impact("data/mini/raw/climbs/manifest.json", HOME)
        if "/climbs/constant_rate/" in name
    ]
    assert deep and all("/samplers/" in name for name in deep)
