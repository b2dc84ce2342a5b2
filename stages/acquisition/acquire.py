"""The acquisition stage: one data set's bytes, as they come, into `data/<profile>/raw/<dataset>/`.

Kinds: `simulate`, `gaussian`, the problems of `problems/` and `sequences` (seeded, no network),
`files` (each pinned by URL and digest), `listed` (many of them, pinned by a listing in
data/sources), `archive` (pinned, unpacked by our own extractor) and `cds` (asked of the Climate
Data Store, which pins nothing). A pinned file is looked for in the mirror, then among verified
downloads of earlier runs (`.work/downloads/<digest>/`), then fetched. Beside the bytes stand
manifest.json (name, URL, sha256, bytes, licence, source of each file); the record goes to its place
in git. Neither says which way a file came: the bytes are the same. Sizes in bytes.
"""

import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from stages import files, records
from stages.acquisition import archive, download
from stages.acquisition.mirror import Mirror, copy
from stages.acquisition.sources import HOSTS, pinned
from stages.errors import DataError, DownloadError, InputError
from stages.params import PROBLEMS, Dataset, Source

CODE = ("stages/acquisition", "stages/seeds.py")
OWN = ("manifest.json",)
FILE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_.-]*"
)  # what a listing may name: nothing outside the raw folder
FRAME_BYTES = 48  # a line of a simulated frame, its share of the truth included
FRAMES_PER_UPDATE = 8
WIND_BYTES = 80  # a line of a drawn wind
SPARE = 64 << 20


def acquire(
    profile: str,
    name: str,
    dataset: Dataset,
    *,
    mirror: Mirror | None = None,
    data: Path = Path("data"),
    limits: download.Limits = download.Limits(),
    hosts: frozenset[str] = HOSTS,
    loopback: bool = False,
) -> Path:
    """Make the raw folder of data set `name` and return it.

    BusyError when another run makes it; DownloadError, DataError, InputError as the parts raise
    them. Old state or new: the folder is replaced whole, and only by a complete one.
    """
    if dataset.kind == "captures":
        raise InputError(
            "captures are not acquired: they are taken in as they arrive",
            where=f"{profile}/{name}",
            remedy="drop them into the folder `retraining.drop` of params.yaml and run `python -m "
            "stages.winds.retraining intake`",
        )
    final = data / profile / "raw" / name
    with (
        files.guard(f"acquisition-{profile}-{name}"),
        records.timed("acquisition", f"{profile}/{name}"),
    ):
        room(final, dataset)
        with files.atomic_folder(final) as folder:
            if dataset.plan:
                entries, packed = simulated(dataset, folder), {}
            elif dataset.kind == "cds":
                from stages.acquisition import cds

                entries, packed = (
                    {
                        name: records.describe(folder / name) | facts
                        for name, facts in cds.fetch(dataset.cds, folder).items()
                    },
                    {},
                )
            else:
                get = _Getter(mirror, limits, hosts, loopback)
                entries, packed = (unpacked if dataset.kind == "archive" else fetched)(
                    dataset, folder, get
                )
            manifest = {
                "dataset": name,
                "entry": dataset.entry,
                "kind": dataset.kind,
                "files": entries,
            }
            files.write_json(
                folder / "manifest.json", manifest | ({"archives": packed} if packed else {})
            )
            record = records.make(
                "acquire",
                f"{profile}/{name}",
                inputs=[],
                outputs=records.outputs_of(folder, final),
                params={"dataset": dataset.model_dump(mode="json")},
                code=CODE,
                seed=dataset.plan.seed if dataset.plan else None,
            )
        files.write_json(
            data.joinpath(*records.location("acquire", profile, name).parts[1:]), record
        )
    return final


def simulated(dataset: Dataset, folder: Path) -> dict[str, Any]:
    """Let the simulator of its kind fill the folder; the files are ours and carry the project's
    licence."""
    if dataset.kind in PROBLEMS:
        import_module(f"stages.fields.made.{dataset.kind}").make(dataset.plan, folder)
    elif dataset.kind == "sequences":
        laws = ("product", "step", "permutation")
        import_module(
            f"stages.sequences.made.{'laws' if dataset.plan.kind in laws else dataset.plan.kind}"
        ).make(dataset.plan, folder)
    elif dataset.kind == "gaussian":
        from stages.winds.sky import gaussian_wind

        gaussian_wind.make(dataset.gaussian, folder)
    else:
        from stages.winds.sky.simulated import (
            simulate,  # these are heavy to import, and only their kinds need them
        )

        simulate(dataset.simulate, folder)
    return {
        path.relative_to(folder).as_posix(): entry(path, None, "MIT", "simulated")
        for path in records.files_in([folder])
    }


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
    described, not kept."""
    entries, packed = {}, {}
    for name, source in dataset.files.items():
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


def room(final: Path, dataset: Dataset) -> None:
    """DownloadError unless the disk holds an upper estimate of what is about to be written
    (twice: the store keeps a copy)."""
    if dataset.kind == "simulate":
        plan = dataset.simulate
        needed = plan.hours * 3600 / plan.update_s * plan.aircraft * FRAMES_PER_UPDATE * FRAME_BYTES
    elif dataset.kind == "gaussian":
        needed = dataset.gaussian.reports * WIND_BYTES
    elif dataset.kind == "cds":
        from stages.acquisition import cds

        needed = 2 * cds.bytes_needed(dataset.cds)
    elif dataset.kind in PROBLEMS:
        needed = getattr(dataset.plan, "bytes", 0)
    else:
        needed = 2 * sum(
            source.bytes or source.bytes_max for source in pinned_files(dataset).values()
        )
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
