"""An own run on another arithmetic passes with a note, on the same one it fails; no forgery is one.

The project is run anew with other last digits in every weight (foreign_project.py). What a forger
does to it falls whether or not it is committed.
"""

import json
import shutil
from pathlib import Path

import foreign_project
import pytest
import why_project
from audit_project import (  # noqa: F401 (fixtures)
    DATA,
    NUMBER,
    REPORTS,
    RUN,
    TABLE,
    about,
    agree,
    edit,
    evaluation,
    number_of,
    relock,
)
from forger import EVALUATE, FRAMES, LOCK, TABULATE, TRAIN, nothing, record, then
from forgery_cases import FORGERIES
from test_forgeries import verified, whole  # noqa: F401 (a fixture)

from stages import records
from stages.audit import arithmetics
from stages.audit.everything import everything
from stages.audit.everything import report_text as written
from stages.audit.render import render
from stages.audit.verify import DEPTHS, audit

COMPARE = "`tradewind compare` judges the numbers"
SAME = "on the same arithmetic"
COMPANIONS = "reports/wind_nowcast/companions.csv"
ACQUIRE, PREPARE = (f"{DATA}/records/simulated.{name}.json" for name in ("acquire", "prepare"))
# What falls at record already beside a commit: code and data that are not its own excuse nothing.
SOONER = {
    "other code claimed to have trained": (TRAIN, "differs from the commit"),
    "a truncated evaluation set, all agreeing": (PREPARE, "is data"),
}
# Run anew, the cell's history is the earlier one's again; its weights are not.
BACKDATED = "a back-dated record: an earlier run's beside newer outputs"
WEIGHTS = {BACKDATED: (f"{RUN}/weights.safetensors", "but train")}
# Of each depth one forgery, and those that fall otherwise here: `make test` holds these.
FIRST = {case.depth: case.name for case in reversed(FORGERIES)}
TOLD = {*FIRST.values(), *SOONER, *WEIGHTS}
BESIDE = [
    pytest.param(
        case,
        committed,
        id=f"{case.name}-{'committed' if committed else 'uncommitted'}".replace(" ", "_"),
        marks=[pytest.mark.slow_fault] if committed or case.name not in TOLD else [],
    )
    for case in FORGERIES
    if case.elsewhere
    for committed in (False, True)
]


@pytest.fixture(scope="session")
def settled(whole, tmp_path_factory):
    """The project, its locks written and committed as those of a run anew are."""
    folder = tmp_path_factory.mktemp("settled")
    project = Path(shutil.copytree(whole, folder / "project", symlinks=True))
    relock(project)
    return project


@pytest.fixture(scope="session")
def foreign_template(settled, tmp_path_factory):
    """The project, run anew elsewhere and not committed."""
    folder = tmp_path_factory.mktemp("foreign")
    project = Path(shutil.copytree(settled, folder / "project", symlinks=True))
    foreign_project.run_anew(project)
    return project


@pytest.fixture
def quiet(monkeypatch, evaluation):
    """Claims and tables of the small project's own; commits claim to be of 2001."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2001-01-01T00:00:00Z")


@pytest.fixture
def project(foreign_template, tmp_path, quiet):
    """A copy of the foreign run for one test."""
    return Path(shutil.copytree(foreign_template, tmp_path / "project", symlinks=True))


@pytest.fixture
def original(settled, tmp_path, quiet):
    """A copy of the project that nobody has run anew."""
    return Path(shutil.copytree(settled, tmp_path / "project", symlinks=True))


def notes(found) -> dict[str, str]:
    """All problems of a finding that are notes, by path; there are no others."""
    assert {problem.verdict for problem in found.problems} <= {"NOTE"}, found.problems
    return {problem.path: problem.text for problem in found.problems}


def failing(found) -> list[tuple[str, str]]:
    """Path and text of all that fails."""
    return [(problem.path, problem.text) for problem in found.problems if problem.verdict == "FAIL"]


# --- an honest run elsewhere


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", [NUMBER, NUMBER.replace("-s0/", "/")])
def test_an_own_run_on_another_arithmetic_passes_with_one_note(project, name, depth):
    found = audit(name, depth, project)
    assert found.verdict == "PASS"
    said = notes(found)
    assert said.keys() == {"commit", "arithmetic"}
    assert "files differ from commit" in said["commit"] and COMPARE in said["commit"]
    assert "an own run on `foreign numpy:" in said["commit"]
    assert "cannot be checked here" in said["commit"]
    assert "another than this process' `" in said["arithmetic"]
    text = render(found)
    assert text.count("NOTE") == 2 and "an own run in this cone" in text and text.endswith("PASS")
    if (name, depth) == (NUMBER, "train"):
        assert "the record's arithmetic is `foreign" in text


def test_all_of_it_is_verified_with_the_same_two_notes(project):
    found = everything(project)
    assert (found.verdict, found.exit_code, len(notes(found))) == ("PASS", 0, 2)
    assert len(written(found).splitlines()) < 16 and COMPARE in written(found)


def test_a_commit_whose_records_name_no_arithmetic_is_unrecorded(original):
    foreign_project.without_lines(original)
    relock(original)
    assert "unrecorded" in notes(everything(original))["arithmetic"]
    found = audit(NUMBER, "eval", original)
    assert found.verdict == "PASS" and "to the last bit" in render(found)
    foreign_project.run_anew(original)
    for found in (everything(original), audit(NUMBER, "hash", original)):
        assert found.verdict == "PASS" and "the commit's on unrecorded" in notes(found)["commit"]


def test_a_run_here_of_a_commit_made_elsewhere_can_be_checked_here(original):
    foreign_project.run_anew(original, committed=True)
    assert notes(audit(NUMBER, "hash", original)).keys() == {"arithmetic"}
    foreign_project.run_anew(original, foreign_project.HERE)
    said = notes(audit(NUMBER, "hash", original))
    assert said.keys() == {"commit"} and "cannot be checked" not in said["commit"]


@pytest.mark.parametrize("by, verdict", [(0.9e-3, "PASS"), (1.1e-3, "FAIL")])
def test_a_checkpoint_evaluated_elsewhere_may_differ_by_a_thousandth(
    project, evaluation, by, verdict
):
    evaluation(by=by * number_of(project))
    found = audit(NUMBER, "eval", project)
    assert found.verdict == verdict and "the record's arithmetic is `foreign" in render(found)


def test_one_seed_trained_again_elsewhere_says_nothing(project):
    shutil.rmtree(project / REPORTS / "runs/simulated/msa-shared-5k-s1")
    found = audit(NUMBER, "train", project)
    assert found.verdict == "INCONCLUSIVE"
    assert "gives other weights" in about(found, f"{RUN}/weights.safetensors")


def test_a_run_of_code_whose_comments_were_edited_since_passes_and_no_other_bytes_do(original):
    train = original / "stages/training/train.py"
    train.write_text(f"# A word of what this is for.\n{train.read_text()}")
    relock(original)  # as `dvc repro` does, which runs nothing else; and commit
    (original / ".git/uncommitted").touch()
    why_project.again(original)
    for found in (everything(original), audit(NUMBER, "hash", original)):
        assert found.verdict == "PASS" and "means the same" in notes(found)["commit"]
    told = json.loads((original / TRAIN).read_text())["code"]["files"]
    edit(original / TRAIN, told["stages/training/train.py"], "0" * 64)
    agree(original)
    assert any(path == TRAIN for path, _ in failing(audit(NUMBER, "record", original)))


# --- what is no such run


@pytest.mark.parametrize("line", [foreign_project.HERE, 'line.partition(" ")[0]', "None"])
def test_other_bytes_on_the_same_arithmetic_or_on_none_fail(original, line):
    foreign_project.run_anew(original, line)
    for found in (audit(NUMBER, "record", original), everything(original)):
        assert found.verdict == "FAIL"
        assert any(path == TRAIN and SAME in text for path, text in failing(found))
        assert any(path == TABLE and SAME in text for path, text in failing(found))


def spoiled(path: str, old: str, new: str):
    """Text replaced in a file, and nothing made to agree."""
    return lambda project: edit(project / path, old, new)


def edit_all(file: Path, old: str, new: str) -> None:
    """Text replaced wherever it stands."""
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def noted(path: str, change):
    """A record edited, all else made to agree with it."""
    return then(record(path, change), agree)


def other_code(project: Path) -> None:
    """A file of code that no stage declares."""
    (project / "stages/kernels.py").write_text("SUM = 1\n")


def other_data(project: Path) -> None:
    """A row of prepared data, everything after it made to agree."""
    rows = project / DATA / "prepared/simulated/rows.parquet"
    rows.write_bytes(rows.read_bytes()[::-1])
    agree(project)


def raw_listed(project: Path) -> None:
    """A raw file with its manifest, everything made to agree."""
    manifest = project / DATA / "raw/simulated/manifest.json"
    (project / FRAMES).write_bytes((project / FRAMES).read_bytes().replace(b"0.000", b"9.000", 1))
    listed = json.loads(manifest.read_text())
    listed["files"]["frames_00.csv"] |= records.describe(project / FRAMES)
    manifest.write_text(json.dumps(listed))
    agree(project)


def figure_drawn(project: Path) -> None:
    """Another figure of the commit's own evaluations, and a foreign line in the table's record."""
    line = json.loads((project / TABULATE).read_text())["environment"]["arithmetic"]
    foreign = "foreign " + line.partition(" ")[2]
    (project / ".git/uncommitted").touch()
    (project / REPORTS / "figures/map.png").write_bytes(b"another picture")
    noted(TABULATE, lambda one: one["environment"].update(arithmetic=foreign))(project)


NO_COMMITS = "is not the commit's either"
NO_DATA = "is data, which is the same wherever NumPy computes alike"
WEIGHT = f"{RUN}/weights.safetensors"
SPOILED = {
    "code beside": (other_code, TRAIN, f"stages/kernels.py {NO_COMMITS}"),
    "code edited": (
        spoiled("stages/fake.py", "import json", "import  json"),
        TRAIN,
        f"stages/fake.py {NO_COMMITS}",
    ),
    "a source": (spoiled(COMPANIONS, "knn", "msa"), COMPANIONS, "differs from the commit"),
    "parameters": (
        spoiled("params.yaml", "steps: 1500", "steps: 9000"),
        "params.yaml",
        "stale: train",
    ),
    "parameters of a record": (
        noted(TRAIN, lambda one: one["params"].update(model="x")),
        TRAIN,
        "another params",
    ),
    "the seed of a record": (noted(TRAIN, lambda one: one.update(seed=1)), TRAIN, "another seed"),
    "the threads of a record": (
        noted(TRAIN, lambda one: one["environment"].update(threads=8)),
        TRAIN,
        "another threads",
    ),
    "the cell of a record": (
        noted(EVALUATE, lambda one: one.update(cell="other")),
        EVALUATE,
        "another cell",
    ),
    "the digest of a record": (
        noted(TRAIN, lambda one: one["code"].update(digest="0" * 64)),
        TRAIN,
        "another code",
    ),
    "an input left out": (
        noted(EVALUATE, lambda one: one["inputs"].pop(WEIGHT)),
        EVALUATE,
        "names of inputs",
    ),
    "data": (other_data, PREPARE, NO_DATA),
    "raw data": (raw_listed, ACQUIRE, NO_DATA),
    "a lock's parameters": (
        lambda project: edit_all(project / LOCK, "steps: 1500", "steps: 1501"),
        LOCK,
        "parameters are others",
    ),
    "a lock's command": (spoiled(LOCK, "--seed 0", "--seed 7"), LOCK, "command"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_not_the_commits_beside_it_excuses_nothing(project, name):
    spoil, path, word = SPOILED[name]
    assert audit(NUMBER, "record", project).verdict == "PASS"
    spoil(project)
    for found in (audit(NUMBER, "record", project), everything(project)):
        assert any(where == path and word in text for where, text in failing(found)), found.problems


def test_a_figure_of_the_same_evaluations_is_an_edit_whatever_torch_is_claimed(original):
    figure_drawn(original)
    found = failing(audit(NUMBER, "record", original))
    assert TABULATE in {path for path, text in found if SAME in text}


# --- the forgeries, beside a foreign run


@pytest.mark.parametrize(("case", "committed"), BESIDE)
def test_each_forgery_falls_beside_a_foreign_run(request, case, committed):
    if committed or case.before is not nothing:
        original = request.getfixturevalue("original")
        case.before(original)
        foreign_project.run_anew(original, committed=committed)
    else:  # with no history of its own it begins where every other does
        original = request.getfixturevalue("project")
    assert verified(original, case.depth).verdict == "PASS"
    case.forge(original)
    found = verified(original, case.depth)
    assert found.verdict == case.verdict
    named = WEIGHTS | ({} if committed else SOONER)
    path, word = named.get(case.name, (case.path, case.word))
    assert any(
        problem.path == path and problem.verdict == case.verdict and word in problem.text
        for problem in found.problems
    ), found.problems


# --- the lines themselves


@pytest.mark.parametrize(
    "one, other, like",
    [
        ("common numpy:a torch:b", "common numpy:a", True),
        ("common numpy:a", "common numpy:a numba:x", True),
        ("common numpy:a", "common numpy:b", False),
        ("common numpy:a", "native numpy:a", False),
        ("common numpy:a torch:b", "common numpy:a torch:c", False),
        ("unrecorded", "unrecorded", False),
        ("common numpy:a device:cuda", "common numpy:a device:cuda", False),
        ("common numpy:a device:cuda", "common numpy:a", False),
    ],
)
def test_lines_are_alike_where_what_both_say_is_the_same(one, other, like):
    assert arithmetics.alike(one, other) is arithmetics.alike(other, one) is like


def test_of_lines_that_are_alike_the_longest_is_quoted():
    lines = {"common numpy:a", "common numpy:a torch:b", "unrecorded"}
    assert arithmetics.quoted(lines) == "`common numpy:a torch:b`, unrecorded"
    assert arithmetics.quoted({f"x numpy:{n}" for n in range(5)}).endswith("and 3 more")
