"""Captures for a toy judge, dropped and taken in; an empty project to do so."""

import shutil
from pathlib import Path

import pytest

from stages import files, params
from stages.winds.retraining import intake as work
from stages.winds.retraining.intake import Verdict

ROOT = Path(__file__).parents[2]
PARAMETERS = params.load(ROOT / "params.yaml")
DROP, RAW, QUARANTINE = (
    Path("data/live/drop"),
    Path("data/live/raw/captures"),
    Path("data/live/quarantine"),
)
START_S = 1_768_456_800
GOOD = b"good"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """An empty project to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_passages", type(files._passages)())
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    DROP.mkdir(parents=True)
    return tmp_path


def toy(hour: int, kind: bytes = GOOD, tail: bytes = b"") -> bytes:
    """A capture for the toy judge: what it is to be judged, and the hour it begins."""
    return b"%s,%d,%s\n" % (kind, START_S + 3600 * hour, tail)


def judge(path: Path, name: str) -> Verdict:
    """A judge that costs nothing: good files say so."""
    kind, start, _ = path.read_bytes().split(b",")
    return Verdict(
        () if kind == GOOD else ("it does not say that it is good",),
        float(start),
        float(start) + 3600,
        1,
        (),
        7,
    )


def drop(**captures: bytes) -> None:
    """Put files into the drop folder; `_` stands for the dot before csv."""
    for name, content in captures.items():
        (DROP / name.replace("_csv", ".csv")).write_bytes(content)


def intake(judged=judge) -> dict:
    return work.intake(PARAMETERS, "live", "captures", DROP, judged)


def names(rows: list[dict]) -> list[str]:
    return [row["name"] for row in rows]


def tree(*tops: str) -> dict[str, bytes]:
    """Every file's bytes under the folders, by path."""
    return {
        path.as_posix(): path.read_bytes()
        for top in tops
        for path in sorted(Path(top).rglob("*"))
        if path.is_file()
    }
