"""The gate on sets of points: good ones pass, each fault shuts it or is told, and a raw file
that changed is noticed."""

import hashlib

import numpy as np
import pytest
from safetensors.numpy import save

from stages import files, records
from stages.errors import DataError
from stages.fields import validate as sets
from stages.validation import gate

SPLIT = np.repeat([0, 1, 2], [10, 4, 4]).astype(np.int8)


def arrays(**changes) -> dict:
    draw = np.random.default_rng(0)
    made = {
        name: draw.normal(size=(18, 5, width)).astype(np.float32)
        for name, width in zip(sets.TABLES, (2, 3, 2, 1), strict=True)
    }
    return made | {"split": SPLIT} | changes


def changed(name, where, value):
    array = arrays()[name]
    array[where] = value
    return arrays(**{name: array})


def twin(one, other):
    made = arrays()
    for name in sets.TABLES:
        made[name][other] = made[name][one]
    return made


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Judge a data set of these arrays: results by (rule, severity)."""
    monkeypatch.chdir(tmp_path)
    raw, prepared = tmp_path / "raw", tmp_path / "prepared"
    for folder in (raw, prepared):
        folder.mkdir()
    (raw / "a.npy").write_bytes(b"raw")
    files.write_json(
        raw / "manifest.json", {"files": {"a.npy": {"sha256": hashlib.sha256(b"raw").hexdigest()}}}
    )

    def judge(content: dict) -> dict:
        (prepared / "sets.safetensors").write_bytes(save(content))
        hashes = {path.as_posix(): files.sha256(path) for path in records.files_in([raw, prepared])}
        results, internal = gate.judge(sets.tables(raw, prepared, hashes), sets.RULES)
        assert internal == []
        return {(one["name"], one["severity"]): one for one in results}

    judge.raw, judge.prepared = raw, prepared
    return judge


def test_good_sets_pass_every_rule(judged):
    results = judged(arrays())
    assert len(results) == len(sets.RULES) and all(one["success"] for one in results.values())


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (lambda: changed("context_y", (3, 2, 1), np.nan), ("sets.finite", "critical")),
        (lambda: changed("target_x", (17, 0, 0), np.inf), ("sets.finite", "critical")),
        (lambda: twin(2, 15), ("sets.leak", "critical")),
        (lambda: twin(2, 3), ("sets.repeated", "warning")),
        (
            lambda: arrays(split=np.where(SPLIT == 1, 0, SPLIT).astype(np.int8)),
            ("sets.splits", "critical"),
        ),
        (lambda: changed("target_y", (slice(10, 14),), 60.0), ("sets.far", "critical")),
        (lambda: changed("target_y", (4, 0, 0), 60.0), ("sets.far", "warning")),
        (
            lambda: arrays(
                target_y=np.where((SPLIT == 2)[:, None, None], 0.01, 1) * arrays()["target_y"]
            ),
            ("sets.spread", "warning"),
        ),
    ],
)
def test_each_fault_fails_its_rule(judged, content, rule):
    assert not judged(content())[rule]["success"]


def test_a_raw_file_that_changed_since_shuts_the_gate(judged):
    judged(arrays())
    (judged.raw / "a.npy").write_bytes(b"war")
    assert not judged(arrays())["raw.bytes", "critical"]["success"]


def test_what_preparation_did_not_write_is_told_by_name(judged):
    with pytest.raises(DataError, match=r"sets\.safetensors"):
        judged({"split": SPLIT})
