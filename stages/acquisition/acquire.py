"""The acquisition of one data set: its bytes, as they come, into data/PROFILE/raw/DATASET/.

What is made by us is given by its family (`Own`: what makes it, seeded, no network). The rest is
fetched: `files` (each pinned by URL and digest), `listed` (many of them, pinned by a listing in
data/sources), `archive` (pinned, unpacked by our own extractor) and `cds` (asked of the Climate
Data Store, which pins nothing). A pinned file is looked for in the mirror, then among verified
downloads of earlier runs (`.work/downloads/<digest>/`), then fetched. Beside the bytes stands
manifest.json (name, URL, sha256, bytes, licence, source of each file), which does not say which way
a file came: the bytes are the same. Sizes in bytes.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import files, records, runner
from stages.acquisition import archive, cds, download
from stages.acquisition.mirror import Mirror, copy
from stages.acquisition.sources import HOSTS, pinned
from stages.errors import DataError, DownloadError
from stages.params import Dataset, Source

OWN = ("manifest.json",)
# What a listing may name: nothing outside the raw folder.
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SPARE = 64 << 20
UNHURRIED = download.Limits()


@dataclass(frozen=True)
class Own:
    """Data of our own: what fills the raw folder, and at most how many bytes it writes."""

    make: Callable[[Path], object]
    bytes: float


def work(
    asked: runner.Asked,
    known: Sequence[str],
    module: str,
    own: Callable[[Dataset], Own | None],
    **ways: Any,
) -> runner.Work:
    """The stage of family module `module`: acquire a data set, one of `known`, of the profile.

    own(dataset): how it is made, or None for what is fetched. TRADEWIND_MIRROR may name a folder
    that is looked into, by digest, before the network is asked; `ways` go to `acquire`. InputError
    for an unknown name or a mirror that is not there; the work raises as `acquire` does.
    """
    name = runner.known(f"data set of profile {asked['profile']!r}", asked["dataset"], known)
    dataset, final = asked.parameters.datasets[name], asked.data("raw")
    if folder := os.environ.get("TRADEWIND_MIRROR"):
        ways = {"mirror": Mirror(folder)} | ways

    def do() -> dict[str, Path]:
        acquire(final, dataset, own(dataset), **ways)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="acquire",
        cell=f"{asked['profile']}/{name}",
        record=records.location("acquire", asked["profile"], name),
        do=do,
        inputs=[],
        code=[module],
        params={"dataset": dataset.model_dump(mode="json")},
        seed=dataset.plan.seed if dataset.plan else None,
    )


def acquire(
    final: Path,
    dataset: Dataset,
    own: Own | None = None,
    *,
    mirror: Mirror | None = None,
    limits: download.Limits = UNHURRIED,
    hosts: frozenset[str] = HOSTS,
    loopback: bool = False,
) -> None:
    """Make the raw folder `final` of a data set, which is called as the folder is.

    DownloadError, DataError, InputError as the parts raise them. Old state or new: the folder is
    replaced whole, and only by a complete one.
    """
    room(final, bytes_needed(dataset) if own is None else own.bytes)
    with files.atomic_folder(final) as folder:
        packed: dict[str, Any] = {}
        if own is not None:
            entries = made(own, folder)
        elif dataset.kind == "cds":
            entries = asked_for(dataset, folder)
        else:
            get = _Getter(mirror, limits, hosts, loopback)
            way = unpacked if dataset.kind == "archive" else fetched
            entries, packed = way(dataset, folder, get)
        manifest = {
            "dataset": final.name,
            "entry": dataset.entry,
            "kind": dataset.kind,
            "files": entries,
        }
        files.write_json(
            folder / "manifest.json", manifest | ({"archives": packed} if packed else {})
        )


def made(own: Own, folder: Path) -> dict[str, Any]:
    """Let the maker fill the folder; the files are ours and carry the project's licence."""
    own.make(folder)
    return {
        path.relative_to(folder).as_posix(): entry(path, None, "MIT", "simulated")
        for path in records.files_in([folder])
    }


def asked_for(dataset: Dataset, folder: Path) -> dict[str, Any]:
    """What the Climate Data Store sends, a file a month."""
    told = cds.fetch(dataset.cds, folder)
    return {name: records.describe(folder / name) | facts for name, facts in told.items()}


def fetched(
    dataset: Dataset, folder: Path, get: "_Getter"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Each pinned file under its own name."""
    entries = {}
    for name, source in pinned_files(dataset).items():
        get(name, source, folder / name)
        entries[name] = entry(folder / name, source.url, source.licence, source.url)
    return entries, {}


def pinned_files(dataset: Dataset) -> dict[str, Source]:
    """A data set's pinned files by name: those of params.yaml, or those its listing names.
    DataError for a listing that is none."""
    if dataset.kind != "listed":
        return dataset.files
    found, place = {}, Path(dataset.listed.listing)
    for number, line in enumerate(place.read_text(encoding="utf-8").splitlines(), 1):
        try:
            digest, size, name = line.split(" ", 2)
            if not FILE.fullmatch(name):
                raise ValueError(f"{name!r} is no plain file name")
            found[name] = Source(
                url=dataset.listed.base + name,
                sha256=digest,
                bytes=int(size),
                licence=dataset.listed.licence,
            )
        except ValueError as error:
            raise DataError(
                "a line of the listing pins no file",
                where=f"{place}, line {number}",
                expected="sha256, bytes and name",
                found=repr(line),
                remedy=str(error).splitlines()[0],
            ) from None
    return found


def unpacked(
    dataset: Dataset, folder: Path, get: "_Getter"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the pinned archives hold, under the names they give it; the archives themselves are
    described, not kept. A file that is none, by its name, lies beside it."""
    entries, packed = {}, {}
    for name, source in dataset.files.items():
        if not name.endswith(archive.NAMES):
            get(name, source, folder / name)
            entries[name] = entry(folder / name, source.url, source.licence, source.url)
            continue
        place = store(name, source)
        get(name, source, place)
        packed[name] = entry(place, source.url, source.licence, source.url) | (
            {"md5": source.md5} if source.md5 else {}
        )
        for member in archive.unpack(place, folder):
            if member in OWN:
                raise DataError(
                    "an archive holds a file with a name of ours", where=f"{name}: {member}"
                )
            entries[member] = entry(folder / member, source.url, source.licence, source.url) | {
                "archive": name
            }
    return entries, packed


def entry(path: Path, url: str | None, licence: str, source: str) -> dict[str, Any]:
    """A file's line in the manifest."""
    return records.describe(path) | {"url": url, "licence": licence, "source": source}


def store(name: str, source: Source) -> Path:
    """Where a download is kept between runs, by its pinned digest: a changed line of code must
    not cost a second download."""
    return files.WORK / "downloads" / pinned(source)[1] / name


class _Getter:
    """Brings a pinned file to a place: from the mirror, from an earlier run's verified download,
    or over the network."""

    def __init__(
        self, mirror: Mirror | None, limits: download.Limits, hosts: frozenset[str], loopback: bool
    ):
        self.mirror, self.limits, self.hosts, self.loopback = mirror, limits, hosts, loopback

    def __call__(self, name: str, source: Source, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.mirror and self.mirror.copy(source, path):
            return
        kept = store(name, source)
        with files.guard(f"download-{pinned(source)[1]}"):
            download.fetch(
                source, kept, limits=self.limits, hosts=self.hosts, loopback=self.loopback
            )
            if kept != path and not copy(kept, source, path):
                raise DownloadError(
                    "a download changed on the disk",
                    where=str(kept),
                    remedy="check the disk, then run again",
                )


def bytes_needed(dataset: Dataset) -> float:
    """An upper estimate of what a fetched data set writes (twice: the store keeps a copy)."""
    if dataset.kind == "cds":
        return 2 * cds.bytes_needed(dataset.cds)
    return 2 * sum(source.bytes or source.bytes_max for source in pinned_files(dataset).values())


def room(final: Path, needed: float) -> None:
    """DownloadError unless the disk at `final` holds so many bytes and some to spare."""
    place = final
    while not place.exists():
        place = place.absolute().parent
    free = shutil.disk_usage(place).free
    if needed + SPARE > free:
        raise DownloadError(
            "the disk does not hold the data set",
            where=str(final),
            expected=f"{needed + SPARE:.3g} bytes free",
            found=f"{free:.3g} bytes free",
            remedy="free some space and run again; nothing was begun",
        )
