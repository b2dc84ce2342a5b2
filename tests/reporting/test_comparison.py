"""`tradewind compare`: what is the same, what training explains and what nothing does."""

import shutil

import pytest
from comparison_project import (  # noqa: F401 (a fixture)
    CELL,
    CLAIMS,
    HERE,
    RECORD,
    TABLE,
    TOLERANCE,
    change,
    git,
    judged,
    lose,
    other_code,
    project,
    rename_unit,
    scaled,
    tradewind,
)

from stages.audit import comparison, comparison_text

# --- numbers


def test_a_commit_compared_with_itself_is_identical(project, monkeypatch, capsys):
    whole, table = judged(project)
    assert (whole.verdict, whole.exit_code, whole.share) == ("identical", 0, 0.0)
    assert [table.identical for table in whole.tables] == [9, 9] and table.count == 9
    assert tradewind(monkeypatch) == 0
    out = capsys.readouterr().out
    assert "IDENTICAL" in out and "\nmoved " not in out
    assert out.startswith(f"{HERE} compared with HEAD (")


def test_what_training_does_by_itself_is_reproduced_and_no_more(project):
    change(project, TABLE, scaled(times=1 + 0.99 * TOLERANCE))
    whole, table = judged(project)
    assert (whole.verdict, whole.exit_code) == ("reproduced", 0)
    assert (table.identical, table.reproduced, table.moved) == (8, 1, [])
    git(project, "checkout", "-q", TABLE)
    change(project, TABLE, scaled(times=1 - 1.01 * TOLERANCE))
    assert judged(project)[1].moved[0].times == pytest.approx(1.01, rel=1e-9)


def test_what_was_never_trained_may_differ_by_rounding_alone(project):
    change(project, TABLE, scaled("darcy/mean", "mse", 1 + 5e-6))
    assert judged(project)[0].verdict == "reproduced"
    change(project, TABLE, scaled("darcy/mean", "mse", 1 + 5e-5))
    assert judged(project)[0].verdict == "moved"


@pytest.mark.parametrize(("times", "verdict"), [(0.99, "reproduced"), (1.01, "moved")])
def test_a_number_far_smaller_than_its_metric_is_judged_at_a_tenth_of_the_metrics_size(
    project, times, verdict
):
    """That of 1, 1.001 and 4, the median of which is the second: the first is made 0.001."""
    change(project, TABLE, scaled(times=1e-3))
    git(project, "commit", "-qam", "small")  # now 0.001, 1.001, 4
    least = 0.1 * 1.001
    change(project, TABLE, scaled(times=1 + times * TOLERANCE * least / 1e-3))
    assert judged(project)[0].verdict == verdict


def test_what_moved_is_named_with_both_values_the_farthest_first(project, monkeypatch, capsys):
    s1 = "darcy/msa-shared-5k-s1"
    for cell, metric, times in ((CELL, "mse", 1.5), (s1, "r2", 3.0), (CELL, "rmse", 1.2)):
        change(project, TABLE, scaled(cell, metric, times))
    whole, table = judged(project)
    assert whole.verdict == "moved" and len(table.moved) == 3 and table.identical == 6
    assert tradewind(monkeypatch, "HEAD") == 1
    named = [line for line in capsys.readouterr().out.splitlines() if line.startswith("moved ")]
    begin = "moved sparse_fields/mini/cells/"
    expected = ((s1, "r2", 2.002, 6.006), (CELL, "mse", 1, 1.5), (CELL, "rmse", 3, 3.6))
    for line, (cell, metric, there, here) in zip(named, expected, strict=True):
        tolerance = TOLERANCE * there
        assert line == (
            f"{begin}{cell}/metrics/{metric}/value: {there:g} -> {here:g}, "
            f"{(here - there) / tolerance:.3g} times the tolerance of {tolerance:.3g}"
        )


def test_the_farthest_few_are_named_and_every_one_when_asked(project, monkeypatch, capsys):
    def add(content):
        many = {f"m{k}": {"value": 1.0 + k, "unit": "1"} for k in range(20)}
        content["cells"][CELL]["metrics"] = many

    change(project, TABLE, add)
    git(project, "commit", "-qam", "more")
    for k in range(20):
        change(project, TABLE, scaled(metric=f"m{k}", times=2.0))
    assert tradewind(monkeypatch) == 1
    few = capsys.readouterr().out
    assert few.count("\nmoved ") == comparison_text.FEW
    assert f"and {20 - comparison_text.FEW} more" in few
    assert tradewind(monkeypatch, "--every") == 1
    assert capsys.readouterr().out.count("\nmoved ") == 20


def test_of_many_numbers_that_differ_a_few_may_be_beyond_their_tolerance(project):
    def add(content):
        many = {f"m{k}": {"value": 1.0, "unit": "1"} for k in range(200)}
        content["cells"][CELL]["metrics"] = many

    change(project, TABLE, add)
    git(project, "commit", "-qam", "more")
    for moved, verdict, status in ((4, "reproduced", 0), (5, "moved", 1)):

        def drift(content, moved=moved):
            for k, one in enumerate(content["cells"][CELL]["metrics"].values()):
                one["value"] = 1 + 2 * TOLERANCE if k < moved else 1.001

        change(project, TABLE, drift)
        whole, table = judged(project)
        assert (table.reproduced, len(table.moved)) == (200 - moved, moved)
        assert whole.share == moved / 200 and (whole.verdict, whole.exit_code) == (verdict, status)
        assert f"m0/value: 1 -> {1 + 2 * TOLERANCE:.6g}" in comparison_text.render(whole)


def test_one_number_farther_off_than_training_goes_decides_alone(project):
    def add(content):
        content["cells"][CELL]["metrics"] = {
            f"m{k}": {"value": 1.0, "unit": "1"} for k in range(200)
        }

    change(project, TABLE, add)
    git(project, "commit", "-qam", "more")
    for times, verdict in ((9, "reproduced"), (11, "moved")):

        def drift(content, times=times):
            for k, one in enumerate(content["cells"][CELL]["metrics"].values()):
                one["value"] = 1.001 if k else 1 + times * TOLERANCE

        change(project, TABLE, drift)
        assert judged(project)[0].verdict == verdict


def test_a_table_that_the_working_copy_lacks_fails_and_one_that_a_folder_lacks_is_left_out(
    project, tmp_path
):
    copy = tmp_path / "other"
    (copy / TABLE).parent.mkdir(parents=True)
    (copy / TABLE).write_bytes((project / TABLE).read_bytes())
    assert comparison.of_commit(project, "HEAD", copy).verdict == "identical"
    (project / TABLE).unlink()
    assert comparison.of_commit(project, "HEAD").verdict == "FAIL"


def test_a_kind_that_was_never_measured_is_said_to_be_so(project, monkeypatch, capsys):
    def rename(content):
        content["cells"]["darcy/gen-shared-5k-s0"] = content["cells"].pop(CELL)

    change(project, TABLE, rename)
    git(project, "commit", "-qam", "gen")
    change(project, TABLE, scaled("darcy/gen-shared-5k-s0", times=1.0001))
    assert judged(project)[1].moved[0].tolerance is None
    assert tradewind(monkeypatch) == 1
    assert "no spread was measured for its kind" in capsys.readouterr().out


def test_a_number_of_one_side_only_is_named(project, monkeypatch, capsys):
    def edit(content):
        metrics = content["cells"][CELL]["metrics"]
        del metrics["mse"]
        metrics["nse"] = {"value": 0.5, "unit": "1"}

    change(project, TABLE, edit)
    assert tradewind(monkeypatch) == 1
    out = capsys.readouterr().out
    assert f"{CELL}/metrics/mse/value: 1 -> gone" in out
    assert f"{CELL}/metrics/nse/value: not there -> 0.5" in out


# --- what no arithmetic explains


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lose, f"cell {CELL} is not there any more"),
        (rename_unit, f"cells/{CELL}/metrics/mse: the unit was 1, it is kn"),
    ],
)
def test_a_missing_cell_and_another_unit_fail(project, monkeypatch, capsys, edit, words):
    change(project, TABLE, edit)
    change(project, RECORD, other_code)  # which excuses neither
    assert tradewind(monkeypatch) == 1
    out = capsys.readouterr().out
    assert f"FAIL sparse_fields/mini: {words}\n" in out and out.count("FAIL ") == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 1}', '{"cells": {"a": NaN}}', "\ufeff"])
def test_a_table_that_cannot_be_read_fails_alone(project, monkeypatch, capsys, text):
    (project / TABLE).write_text(text)
    assert judged(project, "failure_modes")[1].identical == 9
    assert tradewind(monkeypatch) == 1
    out = capsys.readouterr().out
    assert f"FAIL sparse_fields/mini: {TABLE}: " in out and "Traceback" not in out


# --- claims, code, arithmetic


def test_claims_with_another_verdict_are_named_and_those_of_one_side(project, monkeypatch, capsys):
    def edit(claims):
        claims[0]["verdict"] = "undecided"
        claims[1]["dataset"] = "poisson"

    change(project, TABLE, scaled(times=1.001))
    change(project, CLAIMS, edit)
    assert judged(project)[1].claims == [
        ("I-1 on darcy", "holds", "undecided"),
        ("I-2 on darcy", "fails", "absent"),
        ("I-2 on poisson", "absent", "fails"),
    ]
    assert tradewind(monkeypatch) == 0
    assert "claim sparse_fields/mini: I-1 on darcy holds -> undecided\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "edit",
    [
        other_code,
        lambda record: record["params"].update(steps=6),
        lambda record: record.update(seed=1),
        lambda record: record.pop("code"),
    ],
)
def test_numbers_that_moved_with_their_code_are_no_failure(project, monkeypatch, capsys, edit):
    change(project, TABLE, scaled(times=1.5))
    change(project, RECORD, edit)
    whole = judged(project)[0]
    assert (whole.verdict, whole.exit_code, whole.edited) == ("edited", 0, [RECORD])
    assert tradewind(monkeypatch) == 0
    out = capsys.readouterr().out
    assert f"1 records name other code or parameters: {RECORD}" in out and "1 -> 1.5" in out


def test_another_arithmetic_is_told_and_is_no_edit(project, monkeypatch, capsys):
    change(project, TABLE, scaled(times=1.5))
    change(project, RECORD, lambda record: record["environment"].update(arithmetic="two"))
    other = RECORD.replace("sparse_fields", "failure_modes")
    change(project, other, lambda record: record["environment"].pop("arithmetic"))
    whole = judged(project)[0]
    assert whole.edited == [] and whole.verdict == "moved"
    assert whole.arithmetic[0] == ["one"]
    assert sorted(whole.arithmetic[1]) == ["two", comparison.UNRECORDED]
    assert tradewind(monkeypatch) == 1
    assert "arithmetic of what differs: there one; here " in capsys.readouterr().out


# --- sides


def test_results_of_a_folder_stand_for_those_here(project, monkeypatch, capsys, tmp_path):
    results = tmp_path / "results"
    (results / TABLE).parent.mkdir(parents=True)
    shutil.copy(project / TABLE, results / TABLE)  # of one experiment, without records and claims
    change(results, TABLE, scaled(times=1.5))
    change(project, TABLE, scaled(times=7.0))  # what is here is not asked
    _whole, table = judged(project, results=results)
    assert (table.identical, len(table.moved)) == (8, 1) and table.moved[0].here == 1.5
    assert judged(project, "failure_modes", results=results)[1].count == 0
    assert tradewind(monkeypatch, "HEAD", "--results", str(results)) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{results} compared with HEAD") and "failure_modes" not in out


def test_the_commit_named_is_the_one_compared_with(project, monkeypatch, capsys):
    change(project, TABLE, scaled(times=1.5))
    git(project, "commit", "-qam", "moved")
    assert tradewind(monkeypatch) == 0 and tradewind(monkeypatch, "HEAD~1") == 1
    assert "HEAD~1 (" in capsys.readouterr().out


def test_results_without_any_table_are_no_identity(project, monkeypatch, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    assert tradewind(monkeypatch, "HEAD", "--results", str(tmp_path / "empty")) == 2
    out, err = capsys.readouterr()
    assert out == "" and "no table on both sides" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nosuch",), "there is no such commit"),
        (("--", "--all"), "there is no such commit"),
        (("HEAD", "--results", "nowhere"), "there is no such folder of results"),
        (("HEAD", "--results", TABLE), "there is no such folder of results"),
        (("nosuch", "--measure"), "there is no such commit"),
    ],
)
def test_an_unknown_side_is_the_users_mistake(project, monkeypatch, capsys, arguments, words):
    assert tradewind(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {words}")


def test_no_repository_no_commit_and_no_git_are_errors(project, monkeypatch, capsys, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "params.yaml").touch()
    monkeypatch.chdir(bare)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert tradewind(monkeypatch) == 2 and "this is no git repository" in capsys.readouterr().err
    git(bare, "init", "-q")
    assert tradewind(monkeypatch) == 2 and "there is no such commit" in capsys.readouterr().err
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tradewind(monkeypatch) == 2 and capsys.readouterr().err.startswith("error: ")


def test_tables_whose_parts_are_absent_share_a_line_by_profile_and_side():
    def table(experiment, profile, *sides):
        return comparison.Judged(experiment, profile, apart=list(sides))

    tables = [
        table("chaos", "sample", "there", "here"),
        table("series", "sample", "there", "here"),
        table("chaos", "mini", "here"),
        table("series", "mini"),
    ]
    found = comparison.Comparison(("a commit", "the working copy"), tables, ([], []), [])
    told = [line for line in comparison_text.render(found).splitlines() if "not compared" in line]
    remedy = "; `make repro PROFILE={0}` makes {1}, or `dvc pull`"
    assert told == [
        "not compared: breakdowns.json of sample's chaos, series are missing in a commit and in "
        "the working copy" + remedy.format("sample", "them"),
        "not compared: breakdowns.json of mini's chaos is missing in the working copy"
        + remedy.format("mini", "it"),
    ]
