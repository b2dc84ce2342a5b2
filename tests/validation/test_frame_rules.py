"""Rules on raw frame files and drop counts: real forms are read, damage of each kind fails its
rule, nothing crashes."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages import files
from stages.errors import DataError
from stages.validation import gate
from stages.winds.validation import frames

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s/pyModeS"
LONG, SHORT = "8D406B909945DE10000405999BE4", "5D406B90A1B2C3"
GOOD = [f"{1457996400 + i}.250,{LONG[:-4]}{i:04X}" for i in range(200)]
COUNTS = {
    "stage": "decode",
    "read": 200,
    "kept": 190,
    "dropped": {"bad_crc": 10},
    "levels": {
        "frames": {"read": 200, "kept": 190, "dropped": {"bad_crc": 10}},
        "winds": {"read": 190, "kept": 100, "dropped": {"banked": 90}},
    },
}


def judged(
    folder: Path, contents: dict[str, bytes], counts: dict = COUNTS, wind: bool = True
) -> dict[str, dict]:
    """Results by rule and severity for a raw folder of these files."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    hashes = {(folder / name).as_posix(): files.sha256(folder / name) for name in contents}
    manifest = {
        "entry": "frames",
        "files": {Path(path).name: {"sha256": value} for path, value in hashes.items()},
    }
    results, internal = gate.judge(
        frames.tables(folder, manifest, hashes, counts), frames.rules(wind)
    )
    assert internal == []
    return {f"{r['name']}/{r['severity']}": r for r in results}


def failed(results: dict[str, dict]) -> set[str]:
    return {key for key, r in results.items() if not r["success"]}


def text(lines: list[str], end: str = "\n") -> bytes:
    return (end.join(lines) + end).encode()


@pytest.mark.parametrize(
    "content",
    [
        text(GOOD),
        b"\xef\xbb\xbf" + text(GOOD),  # byte order mark, as in the real Comm-B files
        text(GOOD, "\r\n"),
        text([f'{t},"{h}","406B90",19' for t, h in (line.split(",") for line in GOOD)]),
        text([f"{t},406B90,{h}" for t, h in (line.split(",") for line in GOOD)]),
        text([line.lower() for line in GOOD]),
        text([line.replace(LONG[:-4], SHORT[:-4]) for line in GOOD]),  # short frames
    ],
    ids=["plain", "bom", "crlf", "quoted", "with address", "lower case", "short"],
)
def test_every_real_form_is_read(content, tmp_path):
    results = judged(tmp_path, {"a.csv": content})
    assert failed(results) == set()
    assert results["frames.lines/critical"]["observed"] == 200


DAMAGE = {
    "a text line": ([*GOOD[:50], "no frame here", *GOOD[50:]], set()),
    "three text lines": ([*GOOD, "a", "1457996700,xyz", ""], {"frames.unreadable/warning"}),
    "mostly text": (
        [*GOOD, *["x,y"] * 300],
        {"frames.unreadable/warning", "frames.unreadable/critical"},
    ),
    "cut frames": (
        [*GOOD[:190], *(line[:-2] for line in GOOD[190:])],
        {"frames.length/warning", "frames.unreadable/warning"},
    ),
    "no lines": ([], None),
    "out of order": ([GOOD[1], GOOD[0], *GOOD[2:]], {"frames.time_order/warning"}),
    "no order": (
        sorted(GOOD, key=lambda line: line[-1]),
        {"frames.time_order/warning", "frames.time_order/critical"},
    ),
    "a future stamp": ([*GOOD, f"1459996400,{LONG}"], {"frames.future/warning"}),
    "a stamp beyond 2100": (
        [*GOOD, f"4200000000,{LONG}"],
        {"frames.time_range/warning", "frames.time_range/critical", "frames.future/warning"},
    ),
    "milliseconds": ([line.replace(".", "") for line in GOOD], set()),
    "seconds since start-up": (
        [line.removeprefix("14579") for line in GOOD],
        {"frames.time_range/warning", "frames.time_range/critical"},
    ),
    "copies": (
        [line for line in GOOD for _ in range(2 if line > GOOD[150] else 1)],
        {"frames.duplicates/warning"},
    ),
    "all thrice": (
        [line for line in GOOD for _ in range(3)],
        {"frames.duplicates/warning", "frames.duplicates/critical"},
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.fault("F12")
def test_damage_fails_its_rule(case, tmp_path):
    lines, expected = DAMAGE[case]
    results = judged(tmp_path, {"a.csv": text(lines) if lines else b""})
    assert (
        failed(results) == expected
        if expected is not None
        else "frames.lines/critical" in failed(results)
    )


@pytest.mark.fault("F12")
def test_bytes_of_another_encoding_are_counted_not_fatal(tmp_path):
    results = judged(
        tmp_path,
        {"a.csv": text(GOOD[:100]) + "1457996500,é§\n".encode("cp1252") * 5 + text(GOOD[100:])},
    )
    assert failed(results) == {"frames.unreadable/warning"}
    assert results["frames.unreadable/warning"]["rows"] == 5
    assert [e["record"] for e in results["frames.unreadable/warning"]["examples"]] == [
        100,
        101,
        102,
        103,
        104,
    ]


def test_examples_come_from_the_file_that_failed(tmp_path):
    """The second file starts before the first one ends: that is no step back, as each file has
    its own order."""
    results = judged(
        tmp_path, {"a.csv": text(GOOD), "b.csv": text([GOOD[0], GOOD[5], GOOD[4], *GOOD[6:]])}
    )
    order = results["frames.time_order/warning"]
    assert failed(results) == {"frames.time_order/warning"}
    assert order["where"] == ["b.csv"]
    assert order["examples"] == [{"file": "b.csv", "record": 2}]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=30))
@example([b"\x1f\x8b"])
@example([b"\x28\xb5\x2f\xfd"])
@example([b"x\x9c", b""])
@pytest.mark.fault("F12")
def test_no_bytes_crash_it(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("raw") / "a.csv"
    path.write_bytes(b"\n".join([*lines, GOOD[0].encode()]))
    if path.read_bytes().startswith(frames.COMPRESSED):
        with pytest.raises(DataError, match="compressed"):
            frames.frame_row(path)
        return
    row = frames.frame_row(path)
    assert 1 <= row["lines"] <= 1 + sum(line.count(b"\n") + 1 for line in lines)
    assert row["unreadable"] < 1
    assert None not in row.values()


def test_changed_and_missing_raw_files_are_named(tmp_path):
    (tmp_path / "a.csv").write_bytes(text(GOOD))
    manifest = {
        "entry": "frames",
        "files": {"a.csv": {"sha256": "0" * 64}, "gone.csv": {"sha256": "1" * 64}},
    }
    hashes = {(tmp_path / "a.csv").as_posix(): files.sha256(tmp_path / "a.csv")}
    results, _ = gate.judge(frames.tables(tmp_path, manifest, hashes, COUNTS), frames.rules(True))
    changed = next(r for r in results if r["name"] == "raw.bytes")
    assert not changed["success"]
    assert changed["where"] == ["a.csv", "gone.csv"]


@pytest.mark.parametrize(
    ("change", "wind", "expected"),
    [
        ({}, True, set()),
        ({"kept": 80}, True, {"counts.balance/critical"}),
        ({"kept": 91, "dropped": {"banked": 99}}, True, set()),
        ({"kept": 10, "dropped": {"banked": 180}}, True, {"counts.drop/warning"}),
        (
            {"kept": 0, "dropped": {"banked": 190}},
            True,
            {"counts.drop/warning", "counts.drop/critical", "counts.kept/critical"},
        ),
        (
            {"kept": 0, "dropped": {"banked": 190}},
            False,
            {"counts.drop/warning"},
        ),  # not every set reaches winds
        (
            {"read": 20000, "kept": 19990, "dropped": {"outside_range": 10}},
            True,
            {"counts.outside/warning"},
        ),
        (
            {"read": 20000, "kept": 19970, "dropped": {"outside_range": 30}},
            True,
            {"counts.outside/warning", "counts.outside/critical"},
        ),
        ({"kept": 150, "dropped": {"bad_crc": 40}}, True, {"counts.checksum/warning"}),
        (
            {"kept": 40, "dropped": {"bad_crc": 150}},
            False,
            {"counts.checksum/warning", "counts.checksum/critical", "counts.drop/warning"},
        ),
    ],
)
@pytest.mark.fault("F12")
def test_drop_counts(change, wind, expected, tmp_path):
    counts = {
        **COUNTS,
        "levels": {**COUNTS["levels"], "winds": {**COUNTS["levels"]["winds"], **change}},
    }
    assert failed(judged(tmp_path, {"a.csv": text(GOOD)}, counts, wind)) == expected


def test_real_frames_have_repeats_and_nothing_else(tmp_path):
    """1,826 of 12,000 lines repeat a line of the same second: several receivers."""
    names = [f"sample_data_{part}.csv" for part in ("adsb", "commb_df20", "commb_df21")]
    if not (MIRROR / names[0]).exists():
        pytest.skip(f"{MIRROR / names[0]} is not there")
    results = judged(tmp_path, {name: (MIRROR / name).read_bytes() for name in names})
    assert failed(results) == {"frames.duplicates/warning"}
    lines = [
        line.split(",")
        for name in names
        for line in (MIRROR / name).read_text("utf-8-sig").splitlines()
    ]
    by_hand = len(lines) - len({tuple(line) for line in lines})
    assert results["frames.duplicates/warning"]["rows"] == by_hand == 1826
