"""A published number over the commits that wrote its table (`tradewind trend`).

Each commit of HEAD's history that changed metrics.json, oldest first, and the number that stood
there; of a breakdown, where its bytes are here. Nothing is checked out or made again; `tradewind
why` tells the causes of one change. A number is followed under its own address: an experiment that
had another name begins where the name does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

from stages.audit import apart
from stages.audit.chain import Metric, pick
from stages.audit.history import at_commits, git, shallow
from stages.audit.render import redact
from stages.audit.snapshot import resolve
from stages.audit.telling import number, unit
from stages.audit.why import main
from stages.errors import InputError
from stages.params import nearest
from stages.tables import parts

SUBJECT = 60  # letters of a commit's first line


@dataclass(frozen=True)
class Standing:
    """A number at one commit: `date` is the author's (YYYY-MM-DD), `entry` what the table says of
    it; None where the table had no such number, or (`apart`) the breakdowns are not here."""

    commit: str
    date: str
    subject: str
    entry: dict[Any, Any] | None
    apart: bool = False

    @property
    def value(self) -> float | None:
        """The number itself."""
        return None if self.entry is None else main(self.entry)


def trend(address: str, root: str | Path = Path(".")) -> tuple[Metric, list[Standing]]:
    """The number at every commit that wrote its table, the oldest first. InputError outside of a
    repository and for a number that no commit holds."""
    root, metric = Path(root), Metric.parse(address)
    resolve(root, "HEAD")  # refused with a remedy where there is no repository
    log = git(root, "log", "--reverse", "--format=%H%x09%as%x09%s", "--", metric.table) or ""
    commits = [line.split("\t", 2) for line in log.splitlines()]
    tables = [*at_each_commit(root, [one[0] for one in commits], metric)]
    found = []
    for (commit, date, subject), (table, known) in zip(commits, tables, strict=True):
        told = entry(table, metric)
        found.append(Standing(commit[:12], date, subject, told, told is None and not known))
    if not any(one.entry for one in found):
        unknown(metric, *next(filter(itemgetter(0), reversed(tables)), ({}, True)))
    return metric, found


def at_each_commit(
    root: Path, commits: list[str], metric: Metric
) -> Iterator[tuple[dict[Any, Any], bool]]:
    """What is here of the table at each commit ({} where it had none), and whether that is all."""
    record, lock = f"{metric.folder}/records/tabulate.json", f"reports/{metric.experiment}/dvc.lock"
    paths = metric.table, record, lock
    texts = [at_commits(root, commits, path) for path in paths]
    for told in zip(*texts, strict=True):
        files = {path: text.encode() for path, text in zip(paths, told, strict=True)}
        yield apart.numbers(root, metric.folder, files.get)


def cut(root: Path) -> str:
    """What to know of a clone whose history is cut: "" where it is whole."""
    if not shallow(root):
        return ""
    return "note: this clone is shallow: `git fetch --unshallow` brings the earlier commits"


def unknown(metric: Metric, latest: dict[Any, Any], known: bool) -> NoReturn:
    """InputError that tells what the latest table has in place of a number that no commit holds;
    `known`: its breakdowns are here."""
    told = {**latest.get("arms", {}), **latest.get("cells", {})}
    if not told:
        raise InputError(
            "no commit holds a table of that experiment and profile", where=metric.table
        )
    if metric.key in told:
        pick(told[metric.key], metric, not known)
    raise InputError(
        "no commit holds that number",
        where=metric.table,
        found=metric.key + nearest(metric.key, [*told]),
        expected="the address of a number that stands, or stood, in that table",
    )


def entry(table: dict[Any, Any], metric: Metric) -> dict[Any, Any] | None:
    """What a table says of a number; None where it has none of that name."""
    place = table.get("cells", {}).get(metric.key) or table.get("arms", {}).get(metric.key)
    if place is None:
        return None
    try:
        return pick(place, metric)
    except InputError:
        return None


def render(metric: Metric, found: Sequence[Standing]) -> str:
    """A line a commit: date, commit, number, interval, change since the last, first line."""
    lines, before = [f"{metric}, at each commit that wrote {metric.table}"], None
    for one in found:
        value, told = one.value, "–"
        if one.entry is not None and value is not None:
            told = f"{number(value)} {unit(one.entry)}".rstrip() + within(one.entry)
        moved = ""
        if value is not None and before is not None:
            moved = "unchanged" if value == before else f"{value - before:+.3g}"
        before = before if value is None else value
        lines.append(f"{one.date}  {one.commit}  {told:32}  {moved:10}  {one.subject[:SUBJECT]}")
    if gone := sum(one.apart for one in found):
        where = f"{metric.folder}/{parts.BREAKDOWNS}"
        lines.append(f"{where} of {gone} commits, where it may stand, is not here; {parts.REMEDY}")
    return redact("\n".join(line.rstrip() for line in lines))


def within(entry: dict[Any, Any]) -> str:
    """' [low, high]', or nothing where there is no interval."""
    ends = entry.get("low"), entry.get("high")
    return f" [{ends[0]:.4g}, {ends[1]:.4g}]" if None not in ends else ""


def draw(metric: Metric, found: Sequence[Standing], path: Path) -> None:
    """The number over its commits as a picture: a point a commit, its interval as a bar. `path`
    names a PNG."""
    from stages.figures import drawing

    there = [one for one in found if one.entry is not None and one.value is not None]
    figure, axes = drawing.plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    places = list(range(len(there)))
    values = [one.value for one in there]
    axes.plot(places, values, "-o", color="#1d6fa5")
    for place, one in zip(places, there, strict=True):
        ends = (one.entry or {}).get("low"), (one.entry or {}).get("high")
        if None not in ends:
            axes.vlines(place, *ends, color="#1d6fa5", alpha=0.45, linewidth=4)
    labels = [f"{one.commit[:8]}\n{one.date}" for one in there]
    axes.set_xticks(places, labels, fontsize=7, rotation=60 if len(there) > 8 else 0)
    of = unit(there[-1].entry or {})
    axes.set_ylabel("/".join(metric.name) + (f" [{of}]" if of else ""))
    axes.set_title(f"{metric.experiment}/{metric.profile}/{metric.key}")
    drawing.save(figure, path)
