"""`tradewind why`: five scripted histories with one cause each, changes that must not be named,
edits by hand.

Every history is a real git history of the small project, and what is named is compared with what
was done.
"""

import json
import re
import subprocess

import pytest
from audit_project import NUMBER, TABLE, commit, edit, number_of, relock, template  # noqa: F401 (fixtures)
from foreign_project import without_lines
from why_project import again, code, library, lived, lived_template, parameter, raw_file, seed  # noqa: F401 (fixtures)

from stages import records
from stages.audit import causes, counting, telling
from stages.audit import why as asking
from stages.errors import InputError

SPAN = "HEAD~1..HEAD"


def asked(project, span=SPAN, number=NUMBER):
    """The answer and its text."""
    answer = asking.why(span, number, project)
    return answer, telling.render(answer)


def named(answer) -> list[tuple[str, str]]:
    """Kind and name of every cause."""
    return [(cause.kind, cause.what) for cause in answer.causes]


HISTORIES = {
    raw_file: (
        "data",
        "data/mini/raw/simulated/frames_02.csv",
        "added, +5 rows",
        "acquire simulated",
    ),
    parameter: ("parameter", "budget.steps", "1500 → 2500", "train msa-shared-5k-s0"),
    code: ("code", "stages/training/__init__.py", "changed", "train msa-shared-5k-s0"),
    library: ("environment", "numpy", "2.4.6 → 9.9.9", "train msa-shared-5k-s0"),
    seed: ("seed", "protocol.seed", "0 → 7", "train msa-shared-5k-s0"),
}


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_the_one_cause_of_each_history_is_named_and_nothing_else(lived, monkeypatch, history):
    before = number_of(lived)
    again(lived, history(lived, monkeypatch) or "")
    answer, text = asked(lived)
    kind, what, how, stage = HISTORIES[history]
    (cause,) = answer.causes
    assert (cause.kind, cause.what, cause.how, cause.stage) == (
        kind,
        what,
        how,
        stage,
    )  # raw bytes are the same under another library
    assert (
        answer.exit_code == 0
        and not answer.stale
        and (before, number_of(lived)) == (answer.old["value"], answer.new["value"])
    )
    assert (
        re.match(r"-?[\d.]+ → -?[\d.]+ kn \([+-][\d.e-]+\)\n", text)
        and what in text
        and how in text
    )


def test_what_lies_outside_the_cone_is_not_named(lived, monkeypatch):
    parameter(lived, monkeypatch)
    edit(lived / "params.yaml", "leads_min: [5], bootstrap: 100", "leads_min: [5], bootstrap: 200")
    (lived / "stages/doctor.py").write_text("OTHER = 1\n")
    edit(lived / "reports/sensor_noise/companions.csv", "arm,table", "arm,table,other")
    again(lived)
    answer, text = asked(lived)
    assert named(answer) == [("parameter", "budget.steps")] and answer.idle == []
    assert not re.search("doctor|sensor_noise|bootstrap|knn", text)


def test_code_above_a_file_that_came_out_the_same_is_told_apart_as_without_effect(
    lived, monkeypatch
):
    parameter(lived, monkeypatch)
    edit(lived / "stages/preparation/__init__.py", '"preparation"', '"other"')
    edit(lived / "reports/wind_nowcast/companions.csv", "arm,table", "arm,table,other")
    (lived / "stages/tabulation/other.py").write_text("OTHER = 1\n")
    tabulate = lived / "stages/tabulation/tabulate.py"
    edit(tabulate, "import fake\n", "import fake\nfrom stages.tabulation import other\n")
    again(lived)
    answer, text = asked(lived)
    assert named(answer) == [("parameter", "budget.steps")]
    assert {change.what for change in answer.idle} == {
        "stages/preparation/__init__.py",
        "stages/tabulation/other.py",
        "stages/tabulation/tabulate.py",
        "reports/wind_nowcast/companions.csv",
    }
    assert (
        text.index("budget.steps")
        < text.index("without effect")
        < text.index("stages/preparation/__init__.py")
    )


def test_other_words_about_the_same_code_are_no_change(lived):
    file = lived / "stages/preparation/prepare.py"
    file.write_text('"""What prepares."""\n\n' + file.read_text())
    again(lived)
    answer, text = asked(lived)
    assert answer.causes == answer.idle == [] and "unchanged" in text and not answer.stale


def test_code_that_moved_and_means_the_same_is_no_change_across_the_format_of_records(lived):
    old = {"digest": "x", "files": {"stages/a.py": "1", "stages/b.py": "2"}}
    new = {"modules": ["stages.c"], "digest": "y", "files": {"stages/c.py": "3"}}
    means = {("stages/a.py", "1"): "one", ("stages/b.py", "2"): "two", ("stages/c.py", "3"): "one"}
    told = causes.recoded(old, new, lambda *version: means.get(version))
    assert list(told) == [("stages/b.py", "removed")]
    told = causes.recoded(old, new, causes.unknown)
    assert [path for path, _ in told] == ["stages/a.py", "stages/b.py", "stages/c.py"]


def test_a_seed_more_of_an_arm_is_the_cause_of_its_mean(lived, monkeypatch):
    monkeypatch.setenv("SEEDS", "012")
    again(lived)
    answer, text = asked(lived, number=NUMBER.replace("-s0/", "/"))
    assert (
        named(answer) == [("seed", "seed 2")]
        and "seed 2: added  train msa-shared-5k-s2" in text
        and answer.exit_code == 0
    )
    assert "unchanged" in asked(lived)[1]


def test_an_edit_by_hand_is_said_plainly_and_fails(lived):
    edit(lived / TABLE, f'"value": {number_of(lived)!r}', '"value": 1.5')
    commit(lived)
    answer, text = asked(lived)
    assert (
        named(answer) == [("edit", TABLE)]
        and answer.exit_code == 1
        and "FAIL" in text
        and "edited by hand" in text
    )


def test_an_edit_that_the_record_was_brought_to_agree_with_fails_too(lived):
    edit(lived / TABLE, f'"value": {number_of(lived)!r}', '"value": 1.5')
    record = next(lived.glob("reports/wind_nowcast/mini/records/tabulate.json"))
    told = json.loads(record.read_text())
    told["outputs"][TABLE] = records.describe(lived / TABLE)
    record.write_text(json.dumps(told))
    commit(lived)
    answer, text = asked(lived)
    assert (
        [cause.kind for cause in answer.causes] == ["unexplained"]
        and answer.exit_code == 1
        and "same inputs, code" in text
    )


def test_weights_that_differ_though_nothing_else_does_are_not_deterministic(lived):
    again(
        lived,
        "from stages.arithmetic import probe\nprobe.line()  # drawn once, before\n"
        "import numpy as np\n"
        "true = np.random.default_rng\nnp.random.default_rng = lambda seed: true(seed + 1)",
    )
    answer, text = asked(lived)
    assert (
        named(answer)
        == [("unexplained", "reports/wind_nowcast/mini/runs/simulated/msa-shared-5k-s0")]
        and answer.exit_code == 1
    )
    assert "FAIL" in text


ELSEWHERE = (
    "from stages.arithmetic import probe\nfrom stages import fake\n"
    "true, line = fake.save_file, probe.line()\n"
    "probe.line = lambda: 'foreign ' + line.partition(' ')[2] + ' torch:11111111'\n"
    "fake.save_file = lambda tensors, file: true({key: x * fake.np.float32(1.001) for key, x in "
    "tensors.items()}, file)"
)


@pytest.mark.parametrize("recorded", [True, False])
def test_other_weights_on_another_arithmetic_are_explained_by_it(lived, recorded):
    if not recorded:
        without_lines(lived)
        relock(lived)
    again(lived, ELSEWHERE)
    answer, text = asked(lived)
    (cause,) = answer.causes  # not the versions either, which older records name in full
    assert (cause.kind, cause.what, cause.stage) == (
        "arithmetic",
        "kernels",
        "train msa-shared-5k-s0",
    )
    assert answer.exit_code == 0 and cause.how.endswith(" torch:11111111")
    assert recorded != cause.how.startswith("unrecorded → ")
    assert "FAIL" not in text and all(change.kind != "arithmetic" for change in answer.idle)


def test_other_weights_on_the_same_arithmetic_stay_unexplained(lived):
    again(
        lived, ELSEWHERE.replace("'foreign ' + line.partition(' ')[2] + ' torch:11111111'", "line")
    )
    answer, text = asked(lived)
    assert [cause.kind for cause in answer.causes] == ["unexplained"] and answer.exit_code == 1
    assert "and arithmetic" in text


def test_an_unchanged_number_is_said_to_be_so_with_what_changed_in_its_cone(lived):
    edit(lived / "stages/preparation/__init__.py", '"preparation"', '"other"')
    again(lived)
    answer, text = asked(lived)
    assert "kn, unchanged" in text.split("\n")[0] and answer.exit_code == 0 and answer.causes == []
    assert [change.what for change in answer.idle] == [
        "stages/preparation/__init__.py"
    ] and "without effect" not in text
    assert "nothing changed in its cone" in asked(lived, "HEAD..HEAD")[1]


def test_a_record_of_other_code_than_its_commit_holds_is_told_as_stale(lived):
    edit(lived / "stages/training/__init__.py", "SHIFT = 0.0", "SHIFT = 0.5")
    commit(lived)
    answer, text = asked(lived)
    assert (
        len(answer.stale) == 1
        and "train msa-shared-5k-s0 is stale" in answer.stale[0]
        and "stages/training/__init__.py" in text
    )
    assert answer.causes == answer.idle == [] and "unchanged" in text


def test_a_number_of_one_commit_only_is_told(lived):
    told = json.loads((lived / TABLE).read_text())
    del told["cells"]["simulated/msa-shared-5k-s0"]["metrics"]["rmse_component_kn"]
    (lived / TABLE).write_text(json.dumps(told))
    commit(lived)
    answer, text = asked(lived)
    assert (
        "at " + answer.commits[0][:12] + " only" in text
        and "no such metric" in text
        and answer.exit_code == 0
    )


@pytest.mark.parametrize(
    "span, number, words",
    [
        ("HEAD~1", NUMBER, "A..B"),
        ("HEAD...HEAD", NUMBER, "A..B"),
        ("nosuch..HEAD", NUMBER, "no such commit"),
        ("HEAD..mester", NUMBER, "did you mean 'master'"),
        ("--all..HEAD", NUMBER, "no such commit"),
        ("HEAD..HEAD", NUMBER + "x", "rmse_component_kn"),
        ("HEAD..HEAD", NUMBER.replace("5k", "6k"), "msa-shared-5k-s0"),
        ("HEAD..HEAD", "a/b", "EXPERIMENT/PROFILE"),
    ],
)
def test_what_is_unknown_is_refused_with_the_nearest_name(lived_template, span, number, words):
    subprocess.run(["git", "-C", lived_template, "branch", "-q", "-f", "mester2"], check=True)
    subprocess.run(["git", "-C", lived_template, "branch", "-q", "-M", "master"], check=True)
    subprocess.run(["git", "-C", lived_template, "branch", "-q", "-D", "mester2"], check=True)
    with pytest.raises(InputError, match=re.escape(words)):
        asking.why(span, number, lived_template)


def test_outside_a_repository_it_is_refused(tmp_path):
    with pytest.raises(InputError, match="no git repository"):
        asking.why(SPAN, NUMBER, tmp_path)


def test_settings_of_two_stages_are_one_change_only_where_one_name_ends_the_other():
    def change(what, how, stage):
        return causes.Change("parameter", what, how, stage)

    (one,) = causes.merged(
        [change("decode.wind_max", "1 → 2", "decode"), change("wind_max", "1 → 2", "prepare")]
    )
    assert one.what == "decode.wind_max" and one.stage == "decode" and one.also == ("prepare",)
    assert (
        len(
            causes.merged(
                [change("a.steps", "1 → 2", "decode"), change("b.steps", "1 → 2", "prepare")]
            )
        )
        == 2
    )
    assert (
        len(
            causes.merged(
                [change("wind_max", "1 → 2", "decode"), change("wind_max", "1 → 3", "prepare")]
            )
        )
        == 2
    )


def test_rows_are_counted_as_multisets_of_lines_without_heads(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    (
        old.write_text("time,hex\n1,A\n2,B\n2,B\n3,C\n"),
        new.write_text("time,hex\n3,C\n2,B\n1,A\n4,D\n5,E\n"),
    )
    assert counting.rows("x.csv", (old, 1), (new, 1)) == "+2 −1 rows"
    assert (
        counting.rows("x.csv", None, (new, 1)) == "+5 rows"
        and counting.rows("x.csv", (old, 1), None) == "−4 rows"
    )
    assert counting.rows("x.csv", (None, 10), (new, 1200)) == "10 → 1,200 bytes"
    assert (
        counting.rows("x.csv", (None, 10), (None, 10)) == "10 bytes as before, with other content"
    )
