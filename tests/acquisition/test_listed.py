"""Many pinned files by a listing: each is fetched by its own hash, and a listing that pins
nothing is refused by line."""

import hashlib
import os
from pathlib import Path

import pytest

from stages import files, params
from stages.acquisition import acquire
from stages.acquisition.mirror import Mirror
from stages.errors import DataError

ROOT = Path(__file__).parents[2]
MIRROR = os.environ.get("TRADEWIND_MIRROR")
FILES = {"0-X.npy": b"positions", "0-y.npy": b"values", "desc_0.json": b"[]"}


def dataset(lines: list[str]) -> params.Dataset:
    Path("data/sources").mkdir(parents=True, exist_ok=True)
    Path("data/sources/toy.txt").write_text("\n".join(lines) + "\n")
    return params.Dataset(
        entry="sets",
        kind="listed",
        listed={
            "listing": "data/sources/toy.txt",
            "base": "https://raw.githubusercontent.com/a/b/",
            "licence": "MIT",
        },
    )


def listing() -> list[str]:
    return [
        f"{hashlib.sha256(content).hexdigest()} {len(content)} {name}"
        for name, content in FILES.items()
    ]


def test_every_listed_file_comes_from_the_mirror_under_its_own_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for number, content in enumerate(FILES.values()):
        (shelf / f"other-{number}").write_bytes(content)  # names in a mirror mean nothing
    raw = Path("data/sample/raw/toy")
    acquire.acquire(raw, dataset(listing()), mirror=Mirror(shelf))
    assert {
        path.name: path.read_bytes() for path in raw.iterdir() if path.name != "manifest.json"
    } == FILES
    told = files.read_json(raw / "manifest.json")["files"]
    assert (
        told["0-X.npy"]["url"] == "https://raw.githubusercontent.com/a/b/0-X.npy"
        and told["0-X.npy"]["licence"] == "MIT"
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "deadbeef 3 a.npy",
        "0" * 64 + " many a.npy",
        "0" * 64 + " 3",
        "0" * 64 + " -3 a.npy",
        "0" * 64 + " 3 ../a.npy",
        "0" * 64 + " 3 /a.npy",
    ],
)
def test_a_line_that_pins_no_file_is_told_by_its_number(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="line 2"):
        acquire.pinned_files(dataset([listing()[0], line, listing()[1]]))


@pytest.mark.skipif(
    not MIRROR, reason="TRADEWIND_MIRROR is not set: the real rooms are not at hand"
)
def test_the_projects_own_listing_is_what_the_mirror_holds(monkeypatch):
    monkeypatch.chdir(ROOT)
    sources = acquire.pinned_files(params.load().datasets["poisson_rooms"])
    mirror = Mirror(MIRROR)
    assert len(sources) == 300 and all(
        mirror.sums.get(source.sha256) for source in sources.values()
    )
