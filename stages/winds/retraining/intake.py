"""Taking captures in: from the folder receivers drop them into to the raw folder of a data set of
kind `captures`.

A dropped file is claimed by a rename, hashed, judged on its own, and then known by its SHA-256
alone: taken in, seen before, or put into quarantine with the reasons. All that is good in one run
goes in by one swap of the raw folder, whose files are named <UTC start of the first frame>-<12
digits of the hash>.csv, so that the order of names is that of time. A claimed file leaves the
incoming folder only after what was decided of it stands; so a run that was killed is finished by
the next. No decision rests on the clock. Times are Unix seconds, sizes bytes.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stages import code, files, records
from stages.errors import DataError, InputError, IntegrityError, ParamsError
from stages.params import Dataset, Params, nearest
from stages.winds.retraining import ledger
from stages.winds.retraining.captures import HOME, INCOMING, linked, raw_manifest, room, state

MOST_BYTES = 1 << 32  # of one capture: a day of a busy receiver is a tenth of it
CODE = ("stages.winds.retraining.intake",)  # on whose closures the record rests
SUMMARY = HOME / "intake.json"
UNFINISHED = (".part", ".tmp")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+:@-]{0,149}")
CLAIMED = re.compile(r"(\d{6,})-(.+)")
LICENCE = "own"
IGNORED = "*\n!.gitignore\n"


@dataclass(frozen=True)
class Verdict:
    """What a look at one capture found: reasons to refuse it (none: it is good), the first and last
    frame's time, lines read, lines dropped by reason, winds decoded, and the rules that warn."""

    reasons: tuple[str, ...] = ()
    first_s: float = 0.0
    last_s: float = 0.0
    lines: int = 0
    dropped: tuple[tuple[str, int], ...] = ()
    winds: int = 0
    warnings: tuple[str, ...] = ()


Judge = Callable[[Path, str], Verdict]


@dataclass
class Taken:
    """One run's outcome: what was claimed and decided (as in intake.json), and the claimed files
    to be added or removed."""

    accepted: list[dict[Any, Any]] = field(default_factory=list)
    seen: list[dict[Any, Any]] = field(default_factory=list)
    quarantined: list[dict[Any, Any]] = field(default_factory=list)
    left: list[dict[Any, Any]] = field(default_factory=list)
    add: dict[str, Path] = field(default_factory=dict)  # name in the raw folder -> claimed file
    entries: dict[str, dict[Any, Any]] = field(
        default_factory=dict
    )  # name in the raw folder -> its line in the manifest
    done: list[Path] = field(
        default_factory=list
    )  # claimed files that are not needed once the raw folder stands


def intake(
    parameters: Params, profile: str, dataset: str, drop: Path, judge: Judge
) -> dict[str, Any]:
    """Take in what lies in `drop` (made if missing) and what an earlier run claimed and did not
    finish; the summary, also in intake.json.

    `judge` looks at one claimed file (stages/winds/retraining/inspection.py). ParamsError,
    InputError before any work; BusyError when another intake runs; DataError, IntegrityError when
    the raw folder is not what its manifest says or the disk is full.
    """
    spec = checked(parameters, profile, dataset)
    if drop.exists() and not drop.is_dir():
        raise InputError(
            "captures are dropped into a folder",
            where=str(drop),
            found="a file",
            remedy="mend retraining.drop in params.yaml",
        )
    final, quarantine = Path("data", profile, "raw", dataset), Path("data", profile, "quarantine")
    refuse_drop(drop, final, quarantine)
    with (
        files.guard(f"intake-{profile}-{dataset}"),
        records.timed("intake", f"{profile}/{dataset}"),
    ):
        for folder in (drop, INCOMING, quarantine):
            folder.mkdir(parents=True, exist_ok=True)
        if not (quarantine / ".gitignore").exists():
            (quarantine / ".gitignore").write_text(IGNORED, encoding="utf-8")
        taken = Taken()
        claim(drop, taken)
        manifest = raw_manifest(final)
        for path in sorted(path for path in INCOMING.iterdir() if CLAIMED.fullmatch(path.name)):
            decide(path, manifest, quarantine, judge, taken)
        write(profile, dataset, spec, final, manifest, taken)
        for path in taken.done:
            path.unlink()
            files.fault("intake_removed")
        summary = {
            "accepted": taken.accepted,
            "seen": taken.seen,
            "quarantined": taken.quarantined,
            "left": taken.left,
            **state(final),
        }
        files.write_json(SUMMARY, summary)
    return summary


def refuse_drop(drop: Path, *ours: Path) -> None:
    """InputError for a folder whose files are not captures to be moved away: the project's own,
    one that holds it, and what git knows files of."""
    place, root = drop.resolve(), Path.cwd()
    kept = [path.resolve() for path in (Path(".git"), Path(".dvc"), Path(".work"), *ours)]
    if root.is_relative_to(place):
        found = "the project, or a folder that holds it"
    elif any(place.is_relative_to(one) or one.is_relative_to(place) for one in kept):
        found = "a folder of the project's own"
    elif (known := ledger.git("ls-files", "-z", "--", str(drop)) or "") and drop.exists():
        found = f"files that git keeps, as {known.partition(chr(0))[0]}"
    else:
        return
    raise InputError(
        "what lies in the drop folder is moved away",
        where=str(drop),
        expected="a folder of captures alone",
        found=found,
        remedy="mend retraining.drop in params.yaml, or --drop",
    )


def checked(parameters: Params, profile: str, dataset: str) -> Dataset:
    """The data set's section; ParamsError where there is none of kind captures in the profile."""
    known = parameters.profiles
    if profile not in known:
        raise ParamsError(
            f"unknown profile {profile!r}{nearest(profile, known)}", where="params.yaml"
        )
    if dataset not in known[profile].datasets:
        raise ParamsError(
            f"unknown data set {dataset!r} in profile "
            f"{profile!r}{nearest(dataset, known[profile].datasets)}",
            where="params.yaml",
        )
    spec = parameters.datasets[dataset]
    if spec.kind != "captures":
        raise ParamsError(
            "this data set is acquired, not taken in",
            where=f"datasets.{dataset}",
            expected="kind captures",
            found=spec.kind,
        )
    return spec


def claim(drop: Path, taken: Taken) -> None:
    """Move what is finished in the drop folder into the incoming folder, numbered on, so that a
    name may come again. Tells what is left."""
    numbers = [int(found[1]) for found in map(CLAIMED.fullmatch, os.listdir(INCOMING)) if found]
    number = max(numbers, default=0)
    for path in sorted(drop.iterdir(), key=lambda path: os.fsencode(path.name)):
        if path.name.startswith(".") or path.name.endswith(UNFINISHED):
            continue
        told = os.fsencode(path.name).decode("utf-8", "backslashreplace")
        if path.is_symlink() or not path.is_file():
            kind = (
                "a link"
                if path.is_symlink()
                else "a folder"
                if path.is_dir()
                else "no regular file"
            )
            taken.left.append({"name": told, "reason": f"{kind}: captures are plain files"})
        elif not NAME.fullmatch(path.name):
            taken.left.append(
                {
                    "name": told,
                    "reason": "rename it: up to 150 letters, digits and . _ + : @ - make a name",
                }
            )
        else:
            number += 1
            try:
                os.rename(path, INCOMING / f"{number:06d}-{path.name}")
            except FileNotFoundError:  # its receiver took it back
                continue
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                raise InputError(
                    "the drop folder is on another file system, where a file cannot be claimed by "
                    "a rename",
                    where=str(drop),
                    remedy="put it beside the project, and let receivers copy under another name, "
                    "then rename",
                ) from None
            files.fault("intake_claimed")


def decide(
    path: Path, manifest: dict[str, dict[Any, Any]], quarantine: Path, judge: Judge, taken: Taken
) -> None:
    """What becomes of one claimed file, by its hash."""
    name, size = CLAIMED.fullmatch(path.name)[2], path.stat().st_size
    if size > MOST_BYTES:  # sparse files are long for nothing: they are not read
        reason = f"it has {size:,} bytes, more than {MOST_BYTES:,}: cut it by the hour"
        reason += f"; it waits in {INCOMING}"
        taken.left.append({"name": name, "reason": reason})
        return
    if not os.access(path, os.R_OK):
        reason = f"it cannot be read: `chmod a+r` it; it waits in {INCOMING}"
        taken.left.append({"name": name, "reason": reason})
        return
    sha = files.sha256(path)
    told = {"name": name, "sha256": sha}
    if any(line["sha256"] == sha for line in (*manifest.values(), *taken.entries.values())):
        taken.seen.append(told | {"where": "raw"})
        taken.done.append(path)
        return
    note = quarantine / f"{sha[:12]}.json"
    if note.exists() and files.read_json(note).get("sha256") == sha:
        taken.seen.append(told | {"where": "quarantine"})
        if any(quarantine.glob(f"{sha[:12]}-*")):
            taken.done.append(path)
        else:  # a kill came between the note and the move
            os.replace(path, quarantine / f"{sha[:12]}-{name}")
        return
    verdict = judge(path, name)
    if files.sha256(path) != sha:
        taken.left.append(
            {
                "name": name,
                "reason": f"it is still being written; it waits in {INCOMING} for the next run",
            }
        )
    elif verdict.reasons:
        refuse(path, told, verdict, note, taken)
    else:
        accept(path, told, verdict, taken)


def refuse(path: Path, told: dict[str, str], verdict: Verdict, note: Path, taken: Taken) -> None:
    """Put a claimed file into quarantine, its reasons beside it."""
    name, sha = told["name"], told["sha256"]
    files.write_json(
        note,
        told
        | {
            "bytes": path.stat().st_size,
            "reasons": list(verdict.reasons),
            "lines": verdict.lines,
            "dropped": dict(verdict.dropped),
            "remedy": "to have it judged again, remove this note and drop the capture once more",
        },
    )
    files.fault("intake_noted")
    os.replace(path, note.parent / f"{sha[:12]}-{name}")
    taken.quarantined.append(told | {"reasons": list(verdict.reasons)})


def accept(path: Path, told: dict[str, str], verdict: Verdict, taken: Taken) -> None:
    """Let a claimed file be added, under the name of its first frame's time and its hash."""
    name, sha = told["name"], told["sha256"]
    start = datetime.fromtimestamp(int(verdict.first_s), UTC)
    file = f"{start:%Y%m%dT%H%M%SZ}-{sha[:12]}.csv"
    taken.accepted.append(
        told
        | {
            "file": file,
            "first_s": verdict.first_s,
            "last_s": verdict.last_s,
            "lines": verdict.lines,
            "dropped": dict(verdict.dropped),
            "winds": verdict.winds,
            "warnings": list(verdict.warnings),
        }
    )
    taken.entries[file] = {
        "sha256": sha,
        "bytes": path.stat().st_size,
        "url": None,
        "licence": LICENCE,
        "source": name,
        "first_s": verdict.first_s,
        "last_s": verdict.last_s,
    }
    taken.add[file] = path
    taken.done.append(path)


def write(
    profile: str,
    dataset: str,
    spec: Dataset,
    final: Path,
    manifest: dict[str, dict[Any, Any]],
    taken: Taken,
) -> None:
    """The new raw folder in one swap, and its record; nothing where there is nothing to add and the
    record is that of the folder.

    A swap whose record is missing was cut short by a kill: it is done again, which also sweeps up
    what that run left.
    """
    place, entries = records.location("acquire", profile, dataset), manifest | taken.entries
    if not taken.add and (not entries or recorded(place, final)):
        return
    room(final, list(taken.add.values()))
    with files.atomic_folder(final) as folder:
        for name in manifest:
            linked(final / name, folder / name)
        for name, path in taken.add.items():
            shutil.copyfile(path, folder / name)
        files.write_json(
            folder / "manifest.json",
            {"dataset": dataset, "entry": spec.entry, "kind": spec.kind, "files": entries},
        )
        record = records.make(
            "acquire",
            f"{profile}/{dataset}",
            inputs=[],
            outputs=records.outputs_of(folder, final),
            code=code.recorded(CODE),
            params={"dataset": spec.model_dump(mode="json")},
        )
        found = {
            name: record["outputs"][(final / name).as_posix()]["sha256"] for name in sorted(entries)
        }
        damaged = [name for name in found if found[name] != entries[name]["sha256"]]
        if damaged:
            raise IntegrityError(
                "captures are not what the manifest says: nothing was taken in",
                where=str(final),
                found=", ".join(damaged[:5]),
                remedy="restore the raw folder (`dvc checkout`); the new captures wait",
            )
    files.write_json(place, record)


def recorded(place: Path, final: Path) -> bool:
    """Whether the record is that of this raw folder and of this code: else a kill, or a change
    of code, came in between."""
    try:
        record = files.read_json(place)
        outputs = record["outputs"][(final / "manifest.json").as_posix()]["sha256"]
        same = outputs == files.sha256(final / "manifest.json")
        return same and record["code"]["digest"] == code.recorded(CODE)["digest"]
    except (DataError, KeyError, TypeError):
        return False


def render(summary: dict[str, Any]) -> str:
    """The summary for people: one line for each dropped file, one for the whole."""
    lines = [
        f"taken in    {one['name']} as {one['file']}: {one['lines']} lines "
        f"({sum(one['dropped'].values())} dropped), {one['winds']} "
        f"winds{'; warns ' if one['warnings'] else ''}{', '.join(one['warnings'])}"
        for one in summary["accepted"]
    ]
    lines += [f"seen        {one['name']}: already in {one['where']}" for one in summary["seen"]]
    lines += [
        f"quarantined {one['name']} ({one['sha256'][:12]}): {'; '.join(one['reasons'])}"
        for one in summary["quarantined"]
    ]
    lines += [f"left        {one['name']}: {one['reason']}" for one in summary["left"]]
    whole = (
        f"{summary['captures']} captures over {summary['span_s'] / 3600:.2f} h, "
        f"{len(summary['accepted'])} of them new"
    )
    return "\n".join([*lines, whole])
