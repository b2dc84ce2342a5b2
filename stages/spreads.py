"""How much training moves a number by itself: the spread of each kind of model, measured, and the
tolerance that follows from it.

The same cell trained twice, with other rounding alone, ends at other weights; trained with another
seed, likewise. data/spreads/PROFILE/EXPERIMENT.json keeps how far the numbers moved so, by kind of
model (msa, gen, ...) and metric, over all cells of the kind: `relative` to the number, `absolute`,
and `scaled` by the number's size plus half its interval. Each is the standard deviation of one run:
the root mean square of the differences of two, over sqrt(2). What was never trained moves by
rounding alone. Few trainings of a kind tell little of its spread, so it is moderated by the kinds'
median (after Smyth 2004): their variances are averaged, that of the kind with a weight of its
trainings, the median with PRIOR. A variance of few degrees of freedom lies mostly below the true
one, so each counts in the median by what its own median would be. Arms that are kinds of their own
on a data set are moderated by those on the same set alone, for sets differ in their units. A
p-value is scaled by 1, whatever its size: .001 and .02 differ by .019; so are nats of a density, of
which 0 is no less than any other. The tolerance is Student's of PRIOR degrees of freedom, however
many were trained, for the cells of a kind differ, too; it is never less than one item of the test
is worth, for a count or a share that never moved while it was measured moves by one item at a time.
Where an arm was trained several times on a data set, it may be a kind of its own ("tetnp-post on
eq_1d"): one model may learn a set surely and another by luck. Used where a verdict rests on one
seed (claims) and where a number was made on another arithmetic (`tradewind compare`).
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from scipy.special import chdtri, stdtrit

from stages.files import read_json

HOME = Path("data/spreads")
NORMAL = 1.6448536269514722  # half a 90 % interval over its standard deviation, normal
PRIOR = 4  # trainings that the kinds' median is worth
# of each side: so much of what one more training does by itself lies within the tolerance
SURE = 0.995
# relative; float32 resolves 6e-8, which a particle filter's draws and differences of near numbers
# magnify
ROUNDING = 1e-5
TRAINED = re.compile(r"-s\d+$")
MAIN, ENDS = (
    ("value", "mean"),
    ("low", "high", "std", "sd"),
)  # of one number; other fields are numbers of their own
# p-values, and log-densities and what one of them lacks to another, whose zero is arbitrary
BY_ONE = re.compile(r"_p$|^log_likelihood|^lost_|^gap$")
NUMERIC = re.compile(r"[+-]?\d+(\.\d+)?%?")
ALL = "*"  # a kind's metrics together, or all kinds
ON = " on "  # between an arm and the data set on which it is a kind of its own
FIELDS = ("relative", "absolute", "scaled")  # of a spread
Table = dict[str, dict[str, dict[str, float]]]  # kind -> metric -> a spread's fields


@dataclass(frozen=True)
class Number:
    """One number of a table: its address, its value, its size, half its interval (0 where it has
    none) and what one item of the test is worth (0 where it is the mean of none)."""

    path: tuple[str, ...]  # cells | arms, cell, ..., field
    value: float
    size: float
    half: float = 0.0
    item: float = 0.0

    @property
    def kind(self) -> str:
        """The kind of model: the first word of a trained cell's name; "" of what nothing was
        trained for, ALL of what rests on several."""
        if self.path[0] not in ("cells", "arms"):
            return ALL
        cell = self.path[1].rpartition("/")[2]
        return kind_of(f"{cell}-s0" if self.path[0] == "arms" and "-" in cell else cell)

    @property
    def metric(self) -> str:
        """What it is of (`metric_of`); of a field that is neither the number nor its bound, with
        the field."""
        *place, field = self.path
        name = metric_of(tuple(place[2:]))
        if not name:
            return field
        return name if field in (*MAIN, *ENDS) or NUMERIC.fullmatch(field) else f"{name}.{field}"

    @property
    def scale(self) -> float:
        """What a difference of this number is measured by."""
        return 1.0 if BY_ONE.search(self.metric) else self.size + self.half


def metric_of(place: tuple[str, ...]) -> str:
    """The last word of a place within a cell that is no number: 'valid' of
    samplers/own/prompt/metrics/valid, 'overlap' of probes/overlap/25."""
    return next((part for part in reversed(place) if not NUMERIC.fullmatch(part)), "")


def kind_of(cell: str) -> str:
    """The kind of model of a cell's name: its first word where it was trained with a seed,
    else ""."""
    return cell.partition("-")[0] if TRAINED.search(cell) else ""


def numbers(content: Any, path: tuple[str, ...] = ()) -> Iterator[Number]:
    """Every number in nested mappings and lists; bounds and deviations have the size and the
    interval of the number that they belong to."""
    if isinstance(content, list):
        content = {str(place): one for place, one in enumerate(content)}
    main = next((name for name in MAIN if is_number(content.get(name))), None)
    half = (
        abs(content["high"] - content["low"]) / 2
        if main and all(is_number(content.get(end)) for end in ("low", "high"))
        else 0.0
    )
    item = of_item(half, content.get("n"), content.get("unit")) if main else 0.0
    for name, one in content.items():
        if is_number(one):
            mine = main is not None and name in (*MAIN, *ENDS)
            yield Number(
                (*path, name),
                float(one),
                abs(content[main] if mine else one),
                half if mine else 0.0,
                item if mine else 0.0,
            )
        elif isinstance(one, (dict, list)):
            yield from numbers(one, (*path, name))


def of_item(half: float, n: Any, unit: Any) -> float:
    """By how much a mean of n items moves when one of them moves by the items' standard deviation,
    from half its interval of 90 %; a share of which all items agree has none and moves by 1/n."""
    if not is_number(n) or n < 1:
        return 0.0
    return half / (NORMAL * math.sqrt(n)) if half or unit != "1" else 1 / n


def is_number(one: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(one, (int, float)) and not isinstance(one, bool)


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one run's number, and the degrees of freedom that it was measured
    with: trainings, since the numbers of one move together."""

    relative: float
    absolute: float
    scaled: float
    freedom: int


def joint(one: Number, other: Number) -> tuple[float, float, float]:
    """The difference of a number in two runs: relative to its size, absolute, scaled."""
    gap, size = abs(one.value - other.value), (one.size + other.size) / 2
    scale = (one.scale + other.scale) / 2
    return (
        (gap / size if size else 0.0, gap, gap / scale if scale else 0.0)
        if gap
        else (0.0, 0.0, 0.0)
    )


def measure(first: dict[str, Any], second: dict[str, Any]) -> Table:
    """Spreads by kind and metric, from the metrics.json of two runs that differ in rounding
    alone."""
    ours = {number.path: number for number in numbers(first.get("cells", {}), ("cells",))}
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    cells: dict[tuple[str, str], set[str]] = defaultdict(set)
    for other in numbers(second.get("cells", {}), ("cells",)):
        one = ours.get(other.path)
        for key in (
            ((one.kind, one.metric), (one.kind, ALL), (ALL, ALL)) if one and one.kind else ()
        ):
            rows[key].append(tuple(gap * gap / 2 for gap in joint(one, other)))
            cells[key].add(one.path[1])
    return table(
        {
            key: (
                tuple(math.fsum(column) / len(found) for column in zip(*found, strict=True)),
                len(cells[key]),
            )
            for key, found in rows.items()
        }
    )


def on(cell: str, dataset: str) -> str:
    """The kind that an arm is on one data set: "tetnp-post on eq_1d" of tetnp-post-w32-s0."""
    return f"{'-'.join(cell.split('-')[:2])}{ON}{dataset}"


def of_seeds(content: dict[str, Any], by_set: bool = False) -> Table:
    """The same over the seeds of each arm, pooled; of kinds that were trained with several.
    `by_set`: also of every arm on every data set, where cells are named DATASET/CELL."""
    arms: dict[tuple[str, ...], list[Number]] = defaultdict(list)
    for number in numbers(content.get("cells", {}), ("cells",)):
        if number.kind:
            arms[(TRAINED.sub("", number.path[1]), *number.path[2:])].append(number)
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    freedom: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for path, members in arms.items():
        dataset, _, cell = path[0].rpartition("/")
        kinds = (members[0].kind, *([on(cell, dataset)] if by_set else []))
        for key in product(kinds, (members[0].metric, ALL)) if len(members) > 1 else ():
            rows[key] += [variances(members)] * (len(members) - 1)  # pooled: by degrees of freedom
            freedom[key][path[0]] = len(members) - 1
    return table(
        {
            key: (
                tuple(math.fsum(column) / len(found) for column in zip(*found, strict=True)),
                sum(freedom[key].values()),
            )
            for key, found in rows.items()
        }
    )


def variances(members: list[Number]) -> tuple[float, ...]:
    """Of one number over seeds: relative to its size, absolute, scaled."""
    mean = math.fsum(one.value for one in members) / len(members)
    variance = math.fsum((one.value - mean) ** 2 for one in members) / (len(members) - 1)
    size, scale = (
        math.fsum(getattr(one, name) for one in members) / len(members)
        for name in ("size", "scale")
    )
    return (variance / size**2 if size else 0.0), variance, (variance / scale**2 if scale else 0.0)


def table(found: dict[tuple[str, str], tuple[tuple[float, ...], int]]) -> Table:
    """Mean variances and degrees of freedom by (kind, metric), as spreads.json has them; five
    digits are more than they are worth."""
    kinds: Table = defaultdict(dict)
    for (kind, metric), (means, freedom) in sorted(found.items()):
        roots = (float(f"{math.sqrt(mean):.5g}") for mean in means)
        kinds[kind][metric] = dict(zip(FIELDS, roots, strict=True)) | {"freedom": freedom}
    return dict(kinds)


def pooled(one: Table, other: Table) -> Table:
    """Two measurements of spreads as one, each with the weight of its degrees of freedom."""
    found: dict[Any, Any] = {}
    for source in (one, other):
        for kind, rows in source.items():
            for metric, row in rows.items():
                squares, freedom = found.get((kind, metric), ((0.0, 0.0, 0.0), 0))
                more = tuple(row["freedom"] * row[by] ** 2 for by in FIELDS)
                sums = tuple(map(math.fsum, zip(squares, more, strict=True)))
                found[kind, metric] = sums, freedom + int(row["freedom"])
    return table(
        {
            key: (tuple(total / freedom for total in sums), freedom)
            for key, (sums, freedom) in found.items()
        }
    )


def place(experiment: str, profile: str) -> Path:
    """Where the spreads of an experiment and profile are kept, in git."""
    return HOME / profile / f"{experiment}.json"


def files(profile: str) -> list[Path]:
    """What is kept of a profile, of all its experiments."""
    return sorted((HOME / profile).glob("*.json"))


class Spreads:
    """The spreads of one experiment and profile; nothing is known where there is no file."""

    def __init__(self, content: dict[str, Any]):
        self.rounding: dict[str, dict[str, dict[Any, Any]]] = content.get("rounding", {})
        self.seeds: dict[str, dict[str, dict[Any, Any]]] = content.get("seeds", {})

    @classmethod
    def read(cls, home: Path) -> "Spreads":
        """Those of the experiment and profile of `home`, reports/EXPERIMENT/PROFILE of a
        project."""
        file = home.parent.parent.parent / place(home.parent.name, home.name)
        return cls(read_json(file) if file.exists() else {})

    def kind(self, cell: str, dataset: str) -> str:
        """The kind that a trained cell is of: its arm on its data set where that was measured; ""
        of one that nothing was trained for."""
        kind, own = kind_of(cell), on(cell, dataset)
        return own if kind and own in self.seeds else kind

    def of(self, kind: str, metric: str, by: str = "relative") -> Spread | None:
        """How much a kind's metric moves by itself, by seed or by rounding, whichever is more. A
        kind of one seed has what is typical of the others' seeds; None where no kind has several,
        for seeds move a number by up to a hundred times what rounding does. Other metrics have
        other units: where one was not measured, they stand in for its relative spread alone."""
        whole = by != "absolute"
        if kind in self.seeds and (metric in self.seeds[kind] or whole):
            known = [moderated(self.seeds, kind, metric)]
        else:
            known = [*filter(None, (foreign(self.seeds, metric, whole),))]
        if known and (metric in self.rounding.get(kind, {}) or (kind in self.rounding and whole)):
            known.append(moderated(self.rounding, kind, metric))
        return max(known, key=lambda spread: getattr(spread, by), default=None)

    def tolerance(self, number: Number) -> float | None:
        """How far from the number that of a run on another arithmetic may be; None where nothing
        was measured of its kind. Seeds stand in for rounding where that was not measured."""
        if not number.kind:
            return ROUNDING * number.scale
        table = next((one for one in (self.rounding, self.seeds) if number.kind in one), None)
        if table is None:
            return None
        spread = moderated(table, number.kind, number.metric)
        factor = float(stdtrit(PRIOR, SURE))
        relative = max(ROUNDING, factor * math.sqrt(2) * spread.scaled)
        return max(relative * number.scale, number.item)


NOWHERE = Spreads({})  # of results about which nothing was measured


def moderated(table: Table, kind: str, metric: str) -> Spread:
    """A kind's spread of a metric, or, of one that was not measured, of its metrics together;
    moderated by that of the other kinds, of an arm on a data set by those on the same one."""
    name = metric if metric in table[kind] else ALL
    own = table[kind][name]
    others = [
        rows[name]
        for one, rows in table.items()
        if one != ALL and set_of(one) == set_of(kind) and name in rows
    ]
    freedom = int(own["freedom"])
    if kind == ALL or len(others) < 2:  # itself
        return Spread(own["relative"], own["absolute"], own["scaled"], freedom)
    fields = [
        math.sqrt((freedom * own[by] ** 2 + PRIOR * typical(others, by)) / (freedom + PRIOR))
        for by in FIELDS
    ]
    return Spread(*fields, freedom + PRIOR)  # type: ignore[arg-type, call-arg]  # a star of three


def foreign(table: Table, metric: str, whole: bool) -> Spread | None:
    """What is typical of all kinds' spreads of a metric, or, where it was measured of none and
    `whole` says so, of their metrics together."""
    kinds = [rows for one, rows in table.items() if one != ALL and not set_of(one)]
    for name in (metric, ALL) if whole else (metric,):
        if known := [rows[name] for rows in kinds if name in rows]:
            relative, absolute, scaled = (math.sqrt(typical(known, by)) for by in FIELDS)
            return Spread(relative, absolute, scaled, PRIOR)
    return None


def set_of(kind: str) -> str:
    """The data set of "ARM on SET"; "" of a kind on all sets."""
    return kind.partition(ON)[2]


def typical(rows: list[dict[str, float]], by: str) -> float:
    """The median of the kinds' variances, each over the median of its own distribution when the
    true variance is 1: chi-squared of its degrees of freedom, over them."""
    return median(
        row[by] ** 2 * row["freedom"] / float(chdtri(row["freedom"], 0.5)) for row in rows
    )
