"""How a run's numbers compare with a commit's: identical, reproduced, moved, or nothing that an
arithmetic explains (`tradewind compare`).

A number is `identical` to the last bit, `reproduced` where it is within what training moves it by
itself (stages/spreads.py, of the commit), `moved` beyond that. What no arithmetic explains fails: a
table that cannot be read, a cell that is not there, another unit. Each claim's verdict is compared
too. Sides are folders laid out like the project, or commits, read from git's objects.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

from stages.audit import apart
from stages.audit.history import blobs, git
from stages.audit.snapshot import resolve
from stages.errors import DataError, InputError
from stages.files import json_of, read_json, write_json
from stages.spreads import ROUNDING, Number, Spreads, measure, numbers, of_seeds, place, pooled

TABLES, RECORDS = (
    "reports/*/*/metrics.json",
    ("data/*/records/*.json", "reports/*/*/records/*.json"),
)
# of the numbers may lie beyond a tolerance that holds 98 % of what training does by itself, or more
RATE = 0.02
FAR = 10.0  # tolerances that training does not go by itself
# of a metric's median size: a smaller number rests on few points or is a difference of near ones,
# and is judged at this size
SMALL = 0.1
UNRECORDED = "unrecorded"


class Side:
    """The results of a folder or of a commit. A folder that is not `whole` may lack experiments."""

    def __init__(self, root: Path, commit: str | None = None, whole: bool = True):
        self.root, self.commit, self.whole = root, commit, whole
        if commit is None:
            patterns = (TABLES, *RECORDS)
            self._blobs = {
                file.relative_to(root).as_posix(): ""
                for pattern in patterns
                for file in root.glob(pattern)
            }
        else:
            listing = git(root, "ls-tree", "-r", "-z", commit, "--", "reports", "data") or ""
            rows = (line.partition("\t") for line in filter(None, listing.split("\0")))
            self._blobs = {path: about.split()[2] for about, _, path in rows}
        self._known: dict[str, bytes] = {}

    def named(self, *patterns: str) -> list[str]:
        """The files whose paths match."""
        return sorted(
            path for path in self._blobs if any(fnmatchcase(path, pattern) for pattern in patterns)
        )

    def load(self, paths: list[str]) -> None:
        """Read many files of a commit at once."""
        if self.commit:
            names = {self._blobs[path] for path in paths if path in self._blobs}
            self._known |= blobs(self.root, names) if names else {}

    def read(self, path: str) -> bytes | None:
        """A file's bytes, None where there is none."""
        if self.commit is None:
            file = self.root / path
            return file.read_bytes() if file.is_file() else None
        if path not in self._blobs:
            return None
        self.load([] if self._blobs[path] in self._known else [path])
        return self._known[self._blobs[path]]

    def table(self, path: str) -> tuple[dict[str, Any], bool]:
        """The numbers of a table as far as they are here, and whether that is all of them."""
        return apart.numbers(self.root, path.rpartition("/")[0], self.read)

    def json(self, path: str) -> Any:
        """What stands in a JSON file; DataError where it is none, or not there."""
        content = self.read(path)
        if content is None:
            raise DataError("a file is missing", where=path)
        return json_of(content, path)


@dataclass(frozen=True)
class Moved:
    """A number beyond its tolerance (None where its kind was never measured), or one that a side
    lacks."""

    address: str
    there: float | None
    here: float | None
    tolerance: float | None

    trained: bool = True

    @property
    def far(self) -> bool:
        """Whether training does not explain it: nothing was trained, or it is many tolerances
        away."""
        return not self.trained or (bool(self.tolerance) and self.times > FAR)

    @property
    def times(self) -> float:
        """How many tolerances lie between the two."""
        if self.there is None or self.here is None:
            return float("inf")
        return abs(self.here - self.there) / self.tolerance if self.tolerance else float("inf")


@dataclass
class Judged:
    """One experiment and profile: counts, what moved, verdicts of claims that changed, and what
    no arithmetic explains."""

    experiment: str
    profile: str
    identical: int = 0
    reproduced: int = 0
    moved: list[Moved] = field(default_factory=list)
    claims: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # claim on data set, verdict there, verdict here
    failures: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)  # sides whose breakdowns are not here

    @property
    def count(self) -> int:
        """How many numbers were judged."""
        return self.identical + self.reproduced + len(self.moved)


@dataclass
class Comparison:
    """All experiments and profiles of two sides, the arithmetic of each, and how many records
    name other code or parameters."""

    names: tuple[str, str]
    tables: list[Judged]
    arithmetic: tuple[list[str], list[str]]
    edited: list[str]

    @property
    def moved(self) -> int:
        """How many numbers lie beyond their tolerance."""
        return sum(len(table.moved) for table in self.tables)

    @property
    def share(self) -> float:
        """Of the trained numbers that are not identical, how many moved."""
        other = self.moved + sum(table.reproduced for table in self.tables)
        return self.moved / other if other else 0.0

    @property
    def verdict(self) -> str:
        """FAIL, moved, reproduced or identical: the worst that the counts bear."""
        if any(table.failures for table in self.tables):
            return "FAIL"
        if self.share > RATE or any(one.far for table in self.tables for one in table.moved):
            return "edited" if self.edited else "moved"
        return (
            "reproduced"
            if self.moved or any(table.reproduced for table in self.tables)
            else "identical"
        )

    @property
    def exit_code(self) -> int:
        """0, or 1 where something fails or more has moved than the tolerance allows, and no edit
        of code or parameters is why."""
        return int(self.verdict in ("FAIL", "moved"))


def compare(there: Side, here: Side, names: tuple[str, str], kept: Path) -> Comparison:
    """Judge every number of every table of `here` by that of `there`. Spreads are those of `there`;
    where it has none, of the folder `kept`. InputError where the sides have no table in common."""
    paths = sorted({*there.named(TABLES), *here.named(TABLES)})
    records = sorted({*there.named(*RECORDS)} & {*here.named(*RECORDS)})
    there.load([*paths, *records])
    here.load([*paths, *records])
    tables = [judged(there, here, path, kept) for path in paths]
    # of no number, every one is identical
    if not any(table.count or table.failures for table in tables):
        raise InputError(
            "there is no table on both sides",
            where=" and ".join(names),
            expected="reports/EXPERIMENT/PROFILE/metrics.json on either side",
        )
    return Comparison(names, tables, *environments(there, here, records))


def judged(there: Side, here: Side, path: str, kept: Path) -> Judged:
    """One table's numbers and its experiment's claims."""
    home = path.rpartition("/")[0]
    found = Judged(*home.split("/")[1:])  # type: ignore[arg-type]  # a star of two
    try:
        if there.read(path) is None or here.read(path) is None:
            if here.read(path) is None and here.whole:
                found.failures.append(f"{path} is not there any more")
            return found  # an experiment of one side only: nothing to compare
        (first, all_there), (second, all_here) = there.table(path), here.table(path)
        if not (all_there and all_here):
            sides = zip((all_there, all_here), ("there", "here"), strict=True)
            found.apart = [name for known, name in sides if not known]
        if first == second:
            found.identical = sum(1 for _ in numbers(first))
        else:
            spreads = place(found.experiment, found.profile).as_posix()
            own = there.read(spreads) is not None
            count(
                found,
                first,
                second,
                Spreads(there.json(spreads)) if own else Spreads.read(kept / home),
            )
        found.claims = list(verdicts(there, here, f"{home}/claims.json"))
    except (DataError, TypeError, AttributeError, KeyError) as error:
        found.failures.append(f"{path}: {' '.join(str(error).split())}")
    return found


def count(found: Judged, first: dict[Any, Any], second: dict[Any, Any], spreads: Spreads) -> None:
    """Sort every number of two tables into identical, reproduced and moved."""
    ours, theirs = (
        {number.path: number for number in numbers(content)} for content in (second, first)
    )
    least = sizes(theirs.values())
    for group in ("cells", "arms"):
        gone = sorted(first.get(group, {}).keys() - second.get(group, {}).keys())
        found.failures += [f"{group[:-1]} {name} is not there any more" for name in gone]
    found.failures += [
        f"{address}: the unit was {one}, it is {other}"
        for address, one, other in units(first, second, ())
    ]
    for path in sorted(ours.keys() | theirs.keys()):
        other: Any
        one: Any
        one, other = theirs.get(path), ours.get(path)
        if one is None or other is None:
            if ("there" if one is None else "here") not in found.apart:
                found.moved.append(
                    Moved("/".join(path), one and one.value, other and other.value, None)
                )
        elif one.value == other.value:
            found.identical += 1
        else:
            sized = replace(one, size=max(one.size, SMALL * least[one.metric]))
            most = spreads.tolerance(sized)
            if abs(one.value - other.value) <= max(most or 0.0, ROUNDING * sized.scale):
                found.reproduced += 1
            else:
                found.moved.append(
                    Moved("/".join(path), one.value, other.value, most, bool(one.kind))
                )


def sizes(numbers: Iterable[Number]) -> dict[str, float]:
    """The median size of each metric over a table."""
    found = defaultdict(list)
    for number in numbers:
        found[number.metric].append(number.size)
    return {metric: median(one) for metric, one in found.items()}


def units(first: Any, second: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Where two tables name other units."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in first.keys() & second.keys():
            if name == "unit" and first[name] != second[name]:
                yield "/".join(path), str(first[name]), str(second[name])
            yield from units(first[name], second[name], (*path, name))


def verdicts(there: Side, here: Side, path: str) -> Iterator[tuple[str, str, str]]:
    """Claims whose verdict is another one."""
    if there.read(path) in (None, here.read(path)) or here.read(path) is None:
        return
    first, second = (
        {f"{one['id']} on {one['dataset']}": one["verdict"] for one in side.json(path)}
        for side in (there, here)
    )
    for name in first | second:
        if first.get(name) != second.get(name):
            yield name, first.get(name, "absent"), second.get(name, "absent")


def environments(
    there: Side, here: Side, records: list[str]
) -> tuple[tuple[list[str], list[str]], list[str]]:
    """The arithmetics of each side, of the records that differ the most common first, and the
    records of other code or parameters."""
    lines: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    edited = []
    for path in records:
        if there.read(path) == here.read(path):
            continue
        try:
            pair = there.json(path), here.json(path)
            for seen, record in zip(lines, pair, strict=True):
                seen[record["environment"].get("arithmetic", UNRECORDED)] += 1
            if (
                any(pair[0].get(key) != pair[1].get(key) for key in ("params", "seed"))
                or pair[0]["code"]["digest"] != pair[1]["code"]["digest"]
            ):
                edited.append(path)
        except (DataError, TypeError, KeyError, AttributeError):
            edited.append(path)  # the audit says what is wrong with it
    return (
        [line for line, _ in lines[0].most_common()],
        [line for line, _ in lines[1].most_common()],
    ), edited


def sides(root: Path, name: str, results: Path | None) -> tuple[Side, Side, tuple[str, str]]:
    """A commit, and the working copy or a folder of results, with what they are called.
    InputError for an unknown commit or folder."""
    if results is not None and not results.is_dir():
        raise InputError(
            "there is no such folder of results",
            where=str(results),
            expected="a folder with reports/EXPERIMENT/PROFILE/metrics.json",
        )
    commit = resolve(root, name)
    label = name if commit.startswith(name) else f"{name} ({commit[:9]})"
    here = Side(results or root, whole=results is None)
    return Side(root, commit), here, (label, str(results or "the working copy"))


def of_commit(root: Path, name: str, results: Path | None = None) -> Comparison:
    """The working copy's results, or those of a folder, judged by a commit's."""
    there, here, names = sides(root, name, results)
    return compare(there, here, names, root)


def keep_spreads(root: Path, name: str, results: Path | None = None) -> list[Path]:
    """Measure the spread of training between two runs of one code that differ in rounding, and over
    the seeds of the one that is here; the files written, with what they held already. An experiment
    of which these two were measured before is left as it is. InputError where the runs differ in
    more than rounding, or nothing is new."""
    there, here, names = sides(root, name, results)
    found, written, known = compare(there, here, names, root), [], []
    if found.edited or any(table.failures for table in found.tables):
        raise InputError(
            "the two runs differ in more than rounding",
            where=names[0],
            found=", ".join(found.edited[:3]) or "other cells or units",
            expected="one code, one set of parameters, another arithmetic",
            remedy="`tradewind compare` lists what differs",
        )
    between = [resolve(root, name)[:9], *map("; ".join, found.arithmetic)]
    for table in found.tables:
        path = f"reports/{table.experiment}/{table.profile}/metrics.json"
        if table.count > table.identical:
            file = root / place(table.experiment, table.profile)
            before = read_json(file) if file.exists() else {}
            if between in before.get("between", []):
                known.append(file)
                continue
            first, second = there.table(path)[0], here.table(path)[0]
            content = {
                "rounding": pooled(before.get("rounding", {}), measure(first, second)),
                "seeds": pooled(before.get("seeds", {}), of_seeds(second)),
                "between": [*before.get("between", []), between],
            }
            written.append(file)
            write_json(file, content)
    if known and not written:
        raise InputError(
            "the spread between these two runs is there already",
            where=str(known[0]),
            found=" and ".join(between),
            expected="runs not measured yet",
        )
    return written
