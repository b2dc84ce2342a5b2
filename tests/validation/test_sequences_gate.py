"""The gate on sequences: good ones of every kind pass, each planted fault shuts it, and a raw
file that changed is noticed."""

import hashlib

import numpy as np
import pytest
from safetensors.numpy import save

from stages import files, records
from stages.errors import DataError
from stages.sequences import validate as sequences
from stages.validation import gate

DRAW = np.random.default_rng(0)
SPLIT = np.repeat([0, 1, 2], [40, 10, 10]).astype(np.int8)
N = len(SPLIT)


def mazes():
    """60 different mazes: one more wall cell each, start and goal where they were, the path
    round it."""
    found = []
    for row in range(3, 9):
        for extra in range(10):
            maze = np.zeros((12, 13), int)
            maze[[0, -1]], maze[:, [0, -1]] = 1, 1
            maze[row, extra + 1], maze[1, 1], maze[1, 11] = 1, 2, 3
            path = maze.copy()
            path[1, 2:11] = 4
            found.append(np.concatenate([maze.ravel(), path.ravel()]))
    return np.array(found)


def steps():
    begin = DRAW.integers(7, size=N)[:, None]
    since = np.arange(10) - begin
    return (since >= 0) & (since < 4)


KINDS = {
    "product": (DRAW.random((N, 20)) < 0.3, 2, {"share": 0.3}),
    "step": (steps(), 2, {"width": 4, "places": 7}),
    "permutation": (DRAW.permuted(np.tile(np.arange(6), (N, 1)), axis=1), 6, {}),
    "walk": (
        np.cumsum(
            np.concatenate(
                [
                    DRAW.choice([4, 8], size=(N, 1)),
                    DRAW.choice([-1, 0, 1], p=(0.4, 0.2, 0.4), size=(N, 4)),
                ],
                1,
            ),
            1,
        ),
        14,
        {"starts": [4, 8], "stay": 0.2},
    ),
    "maze": (mazes(), 5, {"rows": 12, "columns": 13}),
    "grammar": (DRAW.integers(5, size=(N, 30)), 5, {}),
}


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Judge a data set of a kind, its arrays changed: results by (rule, severity)."""
    monkeypatch.chdir(tmp_path)
    raw, prepared = tmp_path / "raw", tmp_path / "prepared"
    for folder in (raw, prepared):
        folder.mkdir()
    (raw / "train.npy").write_bytes(b"raw")
    files.write_json(
        raw / "manifest.json",
        {"files": {"train.npy": {"sha256": hashlib.sha256(b"raw").hexdigest()}}},
    )

    def judge(kind, tokens=None, length=None, **arrays):
        made, vocabulary, law = KINDS[kind]
        made = made if tokens is None else tokens
        content = {
            "tokens": made.astype(np.int32),
            "split": SPLIT,
            "source": SPLIT.astype(np.int32),
        } | arrays
        (prepared / "sequences.safetensors").write_bytes(save(content))
        files.write_json(
            prepared / "sequences.json",
            {
                "kind": kind,
                "vocabulary": vocabulary,
                "length": length or KINDS[kind][0].shape[1],
                "law": law,
            },
        )
        hashes = {path.as_posix(): files.sha256(path) for path in records.files_in([raw, prepared])}
        results, internal = gate.judge(sequences.tables(raw, prepared, hashes), sequences.RULES)
        assert internal == []
        return {(one["name"], one["severity"]): one for one in results}

    judge.raw, judge.prepared = raw, prepared
    return judge


def planted(kind, where, value):
    tokens = KINDS[kind][0].astype(int)
    tokens[where] = value
    return tokens


def twin(kind, one, other):
    tokens = KINDS[kind][0].astype(int)
    tokens[other] = tokens[one]
    return tokens


@pytest.mark.parametrize("kind", KINDS)
def test_good_sequences_of_every_kind_pass_every_rule(judged, kind):
    results = judged(kind)
    assert len(results) >= 8 and [one for one in results.values() if not one["success"]] == []


FAR = 12 * 13  # the path's half of a maze begins here
FAULTS = [
    ("product", lambda: planted("product", (3, 4), 2), "sequences.range"),
    ("walk", lambda: planted("walk", (59, 0), -1), "sequences.range"),
    ("product", lambda: KINDS["product"][0] * 0, "laws.deviation"),
    ("step", lambda: planted("step", (7, slice(None)), 0), "laws.unlawful"),
    ("step", lambda: planted("step", (7, slice(6, 10)), 1), "laws.unlawful"),
    (
        "permutation",
        lambda: planted("permutation", (50, 0), KINDS["permutation"][0][50, 1]),
        "laws.unlawful",
    ),
    ("walk", lambda: planted("walk", (20, 3), 13), "laws.unlawful"),
    ("walk", lambda: KINDS["walk"][0] + 1, "laws.unlawful"),
    ("walk", lambda: np.tile([4] * 5, (N, 1)), "laws.deviation"),
    ("maze", lambda: planted("maze", (3, 0), 0), "mazes.broken"),
    ("maze", lambda: planted("maze", (3, 30), 2), "mazes.broken"),
    ("maze", lambda: planted("maze", (3, FAR + 13 + 5), 0), "mazes.paths"),  # a gap
    ("maze", lambda: planted("maze", (3, FAR + 26 + 5), 4), "mazes.paths"),  # a side branch
    (
        "maze",
        lambda: planted(
            "maze",
            (3, [FAR + 13 * 9 + 2, FAR + 13 * 9 + 3, FAR + 13 * 10 + 2, FAR + 13 * 10 + 3]),
            4,
        ),
        "mazes.paths",
    ),  # a ring apart
    ("maze", lambda: planted("maze", (3, 5), 0), "mazes.broken"),
    ("maze", lambda: planted("maze", (3, FAR + 13), 0), "mazes.paths"),  # not copied
    (
        "maze",
        lambda: planted(
            "maze",
            (
                30,
                [FAR + 13 + k for k in (5, 6, 7)]
                + [FAR + 26 + k for k in (4, 8)]
                + [FAR + 39 + k for k in (4, 5, 6, 7, 8)],
            ),
            [0] * 3 + [4] * 7,
        ),
        "mazes.detours",
    ),
    ("maze", lambda: twin("maze", 2, 55), "mazes.leak"),
    ("grammar", lambda: twin("grammar", 2, 55), "sequences.leak"),
    ("grammar", lambda: KINDS["grammar"][0][np.r_[np.zeros(40, int), 1:21]], "sequences.repeated"),
    ("grammar", lambda: planted("grammar", slice(0, 40), 3), "sequences.unseen"),
    ("product", lambda: KINDS["product"][0][:, 1:], "sequences.length"),
]


@pytest.mark.parametrize(("kind", "tokens", "rule"), FAULTS)
def test_each_planted_fault_fails_its_rule(judged, kind, tokens, rule):
    assert not judged(kind, tokens())[rule, "critical"]["success"]


def test_a_path_other_than_the_mazes_own_but_as_short_passes(judged):
    """The rules do not ask for the straight path: only for a shortest one."""
    tokens = KINDS["maze"][0].astype(int)
    tokens[0, [13 + 11, FAR + 13 + 11]], tokens[0, [26 + 11, FAR + 26 + 11]] = (
        0,
        3,
    )  # the goal a row lower
    tokens[0, FAR + 13 + 11] = 4
    assert judged("maze", tokens)["mazes.detours", "critical"]["success"]
    assert judged("maze", tokens)["mazes.paths", "critical"]["success"]


def test_a_group_on_both_sides_and_an_empty_split_shut_the_gate(judged):
    group = np.arange(N)
    group[45] = 3
    assert not judged("grammar", group=group)["sequences.group", "critical"]["success"]
    assert judged("grammar", group=np.arange(N))["sequences.group", "critical"]["success"]
    assert not judged("grammar", split=np.minimum(SPLIT, 1))["sequences.splits", "critical"][
        "success"
    ]


def test_a_leak_of_less_than_a_hundredth_warns_only(judged):
    base = DRAW.integers(5, size=(600, 30))
    split = np.repeat([0, 1, 2], [200, 200, 200]).astype(np.int8)
    base[250] = base[10]
    results = judged("grammar", base, split=split, source=split.astype(np.int32))
    assert (
        not results["sequences.leak", "warning"]["success"]
        and results["sequences.leak", "critical"]["success"]
    )


def test_a_raw_file_that_changed_since_shuts_the_gate(judged):
    judged("product")
    (judged.raw / "train.npy").write_bytes(b"war")
    assert not judged("product")["raw.bytes", "critical"]["success"]


def test_what_preparation_did_not_write_is_told_by_name(judged):
    judged("product")
    (judged.prepared / "sequences.safetensors").write_bytes(save({"split": SPLIT}))
    with pytest.raises(DataError, match="prepared sequences cannot be read"):
        sequences.tables(judged.raw, judged.prepared, {})
    judged("product")
    (judged.prepared / "sequences.json").write_text("{}")
    with pytest.raises(DataError, match="prepared sequences cannot be read"):
        sequences.tables(judged.raw, judged.prepared, {})
