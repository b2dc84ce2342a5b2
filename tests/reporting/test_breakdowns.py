"""The numbers of an experiment in two files: nothing is lost, git's is readable line by line, and
what is not here is told by name, in the working copy and at a commit."""

import copy
import hashlib
import json
import subprocess

import pytest

from stages import files
from stages.audit import apart, comparison, comparison_text, trend
from stages.audit.chain import Ledger, Metric, file_of, published
from stages.audit.impact import names_in
from stages.audit.why import why
from stages.errors import DataError, InputError
from stages.tables import parts
from stages.tables.gather import over_seeds

HOME = "reports/winds/mini"
BY_LEAD = "winds/mini/sky/knn/by_lead/5/rmse"


def one(value):
    return {"value": value, "low": value - 1, "high": value + 1, "n": 10, "unit": "kn"}


def numbers(rmse=8.0, late=9.0):
    """Two seeds of a model, and one cell without metrics of its own."""
    cells = {
        f"sky/{name}": {
            "metrics": {"rmse": one(rmse + k), "bias": one(0.5 + k)},
            "by_lead": {"5": {"rmse": one(late + k)}},
            "samplers": {"own": {"passes": one(3.0), "rounds": one(2.0)}, "none": {}},
            "history": {"val": [[1, 0.5], [2, 0.25]]},
            "undefined": {},
            "weights": 12,
        }
        for k, name in enumerate(("knn", "msa-s0", "msa-s1"))
    }
    cells["sky/bare"] = {"metrics": {}, "deep": {"rmse": one(1.0)}}
    return {"profile": "mini", "about": {"sky": 3}, "cells": cells, "arms": over_seeds(cells)}


def leaves(content, path=()):
    if not isinstance(content, dict) or not content:
        return {path}
    return set().union(*(leaves(inner, (*path, key)) for key, inner in content.items()))


@pytest.mark.parametrize(
    "kept", [parts.KEPT, ("metrics/rmse", "samplers/*/passes"), (), ("*",)], ids=str
)
def test_both_files_together_hold_all_and_no_number_stands_in_both(kept):
    given = numbers()
    metrics, rest = parts.parted(copy.deepcopy(given), kept)
    assert "arms" not in metrics
    both = leaves(metrics["cells"]) & leaves(rest["cells"])
    assert both <= {(f"sky/{name}", "metrics") for name in ("bare",)}  # an empty group
    texts = map(parts.by_line, (metrics, rest))
    assert parts.joined(*map(json.loads, texts)) == given


def test_git_keeps_what_is_named_plain_values_and_the_history():
    metrics, rest = parts.parted(numbers(), ("metrics/rmse", "samplers/*/passes"))
    cell = metrics["cells"]["sky/knn"]
    assert cell.keys() == {"metrics", "samplers", "history", "weights"}
    assert cell["metrics"].keys() == {"rmse"}
    assert cell["samplers"] == {"own": {"passes": one(3.0)}}
    assert rest["cells"]["sky/knn"]["metrics"] == {"bias": one(0.5)}
    assert metrics["about"] == {"sky": 3} and rest.keys() == {"cells"}


def test_a_number_has_a_line_of_its_own(tmp_path):
    first, second = numbers(), numbers()
    second["cells"]["sky/knn"]["metrics"]["rmse"]["value"] = 8.5
    texts = []
    for content in (first, second):
        paths = parts.write(tmp_path, content)
        texts.append([path.read_text().splitlines() for path in paths])
    assert [path.name for path in paths] == ["metrics.json", "breakdowns.json"]
    changed = [pair for pair in zip(texts[0][0], texts[1][0], strict=True) if pair[0] != pair[1]]
    ((before, after),) = changed
    assert '"rmse"' in before and "8.5" in after and texts[0][1] == texts[1][1]


def test_a_number_that_is_not_finite_is_not_written(tmp_path):
    content = numbers()
    content["cells"]["sky/knn"]["by_lead"]["5"]["rmse"]["value"] = float("nan")
    with pytest.raises(DataError, match="not finite"):
        parts.write(tmp_path, content)


def test_without_breakdowns_the_rest_is_here_and_who_needs_all_is_told(tmp_path):
    parts.write(tmp_path, numbers())
    assert parts.read(tmp_path) == numbers() and not parts.lacking(tmp_path)
    (tmp_path / parts.BREAKDOWNS).unlink()
    assert parts.lacking(tmp_path)
    assert parts.here(tmp_path)["arms"] == numbers()["arms"]
    with pytest.raises(DataError, match=r"(?s)breakdowns\.json.*dvc pull"):
        parts.read(tmp_path)


@pytest.mark.parametrize("metrics", [{}, {"cells": 5}, {"cells": {"a/b": {}}}])
def test_what_is_no_table_of_numbers_is_told_by_its_file(tmp_path, metrics):
    files.write_json(tmp_path / parts.METRICS, metrics)
    with pytest.raises(DataError, match=r"metrics\.json"):
        parts.here(tmp_path)


def test_a_table_of_an_earlier_commit_is_whole_by_itself(tmp_path):
    files.write_json(tmp_path / parts.METRICS, numbers())
    assert parts.read(tmp_path) == numbers() and not parts.lacking(tmp_path)


# --- at commits


def git(root, *words):
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    subprocess.run(command, check=True, capture_output=True)


def tabulated(root, content, words):
    """A commit of the two files as a stage leaves them: breakdowns in DVC's cache, their MD5 in
    the lock, their SHA-256 in the record."""
    home = root / HOME
    metrics, rest = parts.write(home, content)
    outputs = {
        f"{HOME}/{file.name}": {"sha256": files.sha256(file), "bytes": file.stat().st_size}
        for file in (metrics, rest)
    }
    record = {"stage": "tabulate", "cell": "winds/mini", "params": {}, "environment": {}}
    record |= {"code": {"files": {}, "digest": ""}, "inputs": {}, "outputs": outputs, "seed": None}
    files.write_json(home / "records/tabulate.json", record)
    md5 = hashlib.md5(rest.read_bytes()).hexdigest()
    lock = f"schema: '2.0'\nstages:\n  tabulate@mini:\n    cmd: x\n    outs:\n    - path: {HOME}/"
    lock += f"breakdowns.json\n      hash: md5\n      md5: {md5}\n      size: 1\n"
    (root / "reports/winds/dvc.lock").write_text(lock)
    kept = root / ".dvc/cache/files/md5" / md5[:2] / md5[2:]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(rest.read_bytes())
    git(root, "add", "-A")
    git(root, "commit", "-qm", words)
    return kept


@pytest.fixture
def lived(tmp_path):
    """Two commits that differ in one breakdown; breakdowns are not in git. The cache's objects."""
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(f"/{HOME}/breakdowns.json\n/.dvc/cache\n")
    first = tabulated(tmp_path, numbers(), "first")
    return tmp_path, first, tabulated(tmp_path, numbers(rmse=7.5, late=9.5), "second")


def test_a_breakdown_is_found_and_named_where_it_is_not_here(lived):
    root = lived[0]
    assert published(Ledger(root), Metric.parse(BY_LEAD))[0]["value"] == 9.5
    assert published(Ledger(root), Metric.parse("winds/mini/sky/msa/rmse"))[0]["mean"] == 9.0
    assert file_of(root, Metric.parse(BY_LEAD)) == (f"{HOME}/breakdowns.json", "DVC")
    for address in ("sky/msa/rmse", "sky/knn/bias"):
        found = file_of(root, Metric.parse(f"winds/mini/{address}"))
        assert found == (f"{HOME}/metrics.json", "git")
    (root / HOME / parts.BREAKDOWNS).unlink()
    with pytest.raises(InputError, match=r"(?s)breakdowns\.json.*dvc pull"):
        published(Ledger(root), Metric.parse(BY_LEAD))
    assert published(Ledger(root), Metric.parse("winds/mini/sky/knn/rmse"))[0]["value"] == 7.5


def test_a_trend_tells_a_breakdown_at_every_commit_whose_bytes_are_here(lived):
    root, first, second = lived
    assert [one.value for one in trend.trend(BY_LEAD, root)[1]] == [9.0, 9.5]
    first.unlink()
    metric, found = trend.trend(BY_LEAD, root)
    assert [one.value for one in found] == [None, 9.5]
    assert "breakdowns.json of 1 commits" in trend.render(metric, found)
    second.unlink()
    (root / HOME / parts.BREAKDOWNS).unlink()
    with pytest.raises(InputError, match=r"(?s)breakdowns\.json.*dvc pull"):
        trend.trend(BY_LEAD, root)


def test_bytes_that_are_not_the_recorded_ones_are_not_believed(lived):
    root, first, _ = lived
    first.write_text(first.read_text().replace("9.0", "1.0"))
    assert [one.value for one in trend.trend(BY_LEAD, root)[1]] == [None, 9.5]


def test_why_compares_a_breakdown_of_two_commits_and_says_where_one_is_not_here(lived):
    root, first, _ = lived
    found = why("HEAD~1..HEAD", BY_LEAD, root)
    assert (found.old["value"], found.new["value"], found.moved) == (9.0, 9.5, True)
    first.unlink()
    found = why("HEAD~1..HEAD", BY_LEAD, root)
    assert "breakdowns" in found.absent


def test_a_comparison_counts_breakdowns_and_says_which_side_lacks_them(lived):
    root, first, _ = lived
    there, here = comparison.Side(root, "HEAD~1"), comparison.Side(root)
    judged = comparison.judged(there, here, f"{HOME}/metrics.json", root)
    moved = {one.address: one.here for one in judged.moved}
    assert moved["cells/sky/knn/by_lead/5/rmse/value"] == 9.5 and judged.apart == []
    whole = judged.count
    first.unlink()
    judged = comparison.judged(there, here, f"{HOME}/metrics.json", root)
    assert judged.apart == ["there"] and 0 < judged.count < whole and judged.failures == []
    told = "\n".join(comparison_text.told_of(judged, True))
    (absent,) = comparison_text.absent([judged], ("HEAD~1", "the working copy"))
    assert "breakdowns.json of mini's winds is missing in HEAD~1; `make repro PROFILE=" in absent
    assert "by_lead" not in told and "cells/sky/knn/metrics/rmse/value: 8 -> 7.5" in told


def test_the_same_numbers_are_identical_with_their_breakdowns(lived):
    root = lived[0]
    sides = comparison.Side(root, "HEAD"), comparison.Side(root)
    judged = comparison.judged(*sides, f"{HOME}/metrics.json", root)
    assert judged.moved == [] == judged.apart and judged.count == judged.identical > 50


def test_impact_names_what_only_breakdowns_hold_and_a_record_vouches_for_them(lived):
    root = lived[0]
    names = names_in(Ledger(root), f"{HOME}/metrics.json")
    assert names["sky/bare"] == ("deep/rmse",) and set(names["sky/knn"]) == {"rmse", "bias"}
    path = f"{HOME}/{parts.BREAKDOWNS}"

    def read(name):
        return (root / name).read_bytes()

    assert apart.file_of(root, HOME, read) == root / path
    (root / path).write_text("{}")  # then the cache's object, which the lock names
    assert apart.file_of(root, HOME, read) == lived[2]
