"""From a published number back to the raw files, record by record.

A stage's record (in git, `records/` of its profile) names the files it read and wrote with their
SHA-256. Its own name says which place it speaks for, so the producer of an input is found by place,
never by what a record claims. Of a stage that serves many cells (evaluation, tabulation) a metric's
chain follows only the inputs of its own cells; what the tabulation wrote (table, claims, figures)
belongs to every number in it. A source (printed tables, companions.csv) is kept in git and has no
record. Whoever reads prepared data rests on their gate, whether or not its record names it.
"""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from stages.errors import DataError, InputError
from stages.files import read_json
from stages.params import nearest
from stages.tables import parts

# The places a stage's record speaks for, from the raw files to the table: the order of the chain.
PLACES = {
    "acquire": ("data/{profile}/raw/{dataset}",),
    "decode": ("data/{profile}/decoded/{dataset}",),
    "validate": ("data/{profile}/validated/{dataset}.json",),
    "prepare": ("data/{profile}/prepared/{dataset}",),
    "contexts": ("data/{profile}/contexts/{dataset}",),
    "sweep": ("reports/{experiment}/{profile}/sweeps/{dataset}/{cell}",),
    "train": ("reports/{experiment}/{profile}/runs/{dataset}/{cell}",),
    "evaluate": ("reports/{experiment}/{profile}/evaluated/{dataset}",),
    "example": ("data/{profile}/example",),
    "tabulate": tuple(
        f"reports/{{experiment}}/{{profile}}/{name}"
        for name in (parts.METRICS, parts.BREAKDOWNS, "table.md", "claims.json", "figures")
    ),
}
RECORDS = ("data/*/records/*.json", "reports/*/*/records/*.json")
# Sources in git that no record tells of: written by hand, by a benchmark, or lists of code, whose
# stage the lock alone tells of.
SOURCES = re.compile(
    r"data/(published|sources|code|spreads)/.+|reports/[^/]+/(companions|memory)\.csv|"
    r"reports/[^/]+/[^/]+/benchmarks\.json"
)
SEED = re.compile(r"-s(\d+)$")
GATED = re.compile(r"(data/[^/]+)/prepared/([^/]+)/.+")


@dataclass(frozen=True)
class Metric:
    """A number's address: experiment/profile/dataset/cell/name, where name may go deeper
    (by_altitude/FL300/nse)."""

    experiment: str
    profile: str
    dataset: str
    cell: str
    name: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Metric":
        """From `experiment/profile/dataset/cell/name...`; InputError otherwise."""
        parts = text.strip("/").split("/")
        if len(parts) < 5 or any(part in ("", ".", "..") for part in parts):
            raise InputError(
                "that is not the address of a metric",
                found=text,
                expected="EXPERIMENT/PROFILE/DATASET/CELL/METRIC",
                remedy="for example wind_nowcast/mini/simulated/knn/rmse_component_kn",
            )
        # mypy takes a star for all that is left
        return cls(*parts[:4], tuple(parts[4:]))  # type: ignore[arg-type, call-arg]

    def __str__(self) -> str:
        return "/".join((self.experiment, self.profile, self.dataset, self.cell, *self.name))

    @property
    def folder(self) -> str:
        """The folder of this experiment and profile."""
        return f"reports/{self.experiment}/{self.profile}"

    @property
    def table(self) -> str:
        """The table in git that holds the number."""
        return f"{self.folder}/{parts.METRICS}"

    @property
    def key(self) -> str:
        """The cell's key in the table."""
        return f"{self.dataset}/{self.cell}"


@dataclass(frozen=True)
class Node:
    """A record: the stage, the file it is in, the places it speaks for, and what it says."""

    stage: str
    path: str
    homes: tuple[str, ...]
    record: dict[Any, Any] = field(hash=False, default_factory=dict)
    error: str = ""

    @property
    def producer(self) -> str:
        """Stage and cell in words."""
        return f"{self.stage} {self.record.get('cell', '')}".strip()

    def owns(self, path: str) -> bool:
        """Whether `path` lies in a place of this record."""
        return any(path == home or path.startswith(home + "/") for home in self.homes)


def read_node(path: str, read: Callable[[], Any]) -> Node | None:
    """The record in the file `path`, whose JSON `read` gives; None where its name is no
    record's; bad content becomes a Node with `error`."""
    parts, names = path.split("/"), posixpath.basename(path).removesuffix(".json").split(".")
    place = dict(zip(("dataset", "cell"), names[:-1], strict=False)) | {
        "experiment": parts[1],
        "profile": parts[-3],
    }
    try:
        homes = tuple(home.format(**place) for home in PLACES[names[-1]])
    except KeyError:
        return None
    try:
        record = read()
        check(record, path)
        return Node(names[-1], path, homes, record)
    except DataError as error:
        return Node(names[-1], path, homes, error=" ".join(str(error).split()))
    except (KeyError, TypeError, AttributeError) as error:
        return Node(
            names[-1], path, homes, error=f"not a run record: {type(error).__name__} at {error}"
        )


def check(record: dict[Any, Any], path: str) -> None:
    """Raise where a record lacks a part, holds another type, or names a file outside the
    project."""
    for name, kind in (
        ("stage", str),
        ("cell", str),
        ("params", dict),
        ("environment", dict),
        ("code", dict),
    ):
        if not isinstance(record[name], kind):
            raise TypeError(name)
    for side in ("inputs", "outputs"):
        for name, described in record[side].items():
            if name.startswith("/") or ".." in name.split("/"):
                raise DataError("a record names a file outside the project", where=path, found=name)
            if not (isinstance(described["sha256"], str) and isinstance(described["bytes"], int)):
                raise TypeError(f"{side}.{name}")
    if not all(isinstance(text, str) for text in record["code"]["files"].values()):
        raise TypeError("code.files")
    modules = record["code"].get("modules", [])
    if not (isinstance(modules, list) and all(isinstance(name, str) for name in modules)):
        raise TypeError("code.modules")


def nearest_home(homes: dict[str, Node], path: str) -> Node | None:
    """Of records by place the one in whose place `path` lies."""
    while path and path not in homes:
        path = posixpath.dirname(path)
    return homes.get(path)


class Ledger:
    """Every record under a project's root, read once."""

    def __init__(self, root: Path):
        self.root = root
        paths = sorted(
            file.relative_to(root).as_posix() for pattern in RECORDS for file in root.glob(pattern)
        )
        self.nodes = [
            node
            for node in (read_node(path, partial(read_json, root / path)) for path in paths)
            if node
        ]

    @cached_property
    def _homes(self) -> dict[str, Node]:
        return {home: node for node in self.nodes for home in node.homes}

    def owner(self, path: str) -> Node | None:
        """The record in whose place `path` lies."""
        return nearest_home(self._homes, path)

    def gate(self, path: str) -> Node | None:
        """The record of the gate of the data set whose prepared file `path` is."""
        found = GATED.fullmatch(path)
        return self.owner(f"{found[1]}/validated/{found[2]}.json") if found else None

    def tables(self) -> list[str]:
        """The published tables."""
        return sorted(
            file.relative_to(self.root).as_posix()
            for file in self.root.glob("reports/*/*/metrics.json")
        )


@dataclass
class Chain:
    """The records a metric rests on, value first, and every file of the chain with the record
    that made it."""

    metric: Metric
    cells: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[str, list[tuple[Node, dict[Any, Any]]]] = field(
        default_factory=dict
    )  # file -> who read it, and as what
    files: dict[str, Node | None] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """The published tables at the chain's head."""
        return (self.metric.table,)

    def wanted(self, path: str, stage: str) -> bool:
        """Whether a file that `stage` read or wrote concerns this metric's own data set and
        cells."""
        runs, evaluated = (
            f"{self.metric.folder}/{part}/{self.metric.dataset}/" for part in ("runs", "evaluated")
        )
        if path.startswith(f"{self.metric.folder}/runs/"):
            return path.startswith(tuple(f"{runs}{cell}/" for cell in self.cells))
        if path.startswith(f"{self.metric.folder}/evaluated/"):
            kind, _, cell = path.removeprefix(evaluated).removesuffix(".parquet").partition("-")
            return path.startswith(evaluated) and (
                kind not in ("predictions", "field") or cell in self.cells
            )
        if path.startswith(
            f"{self.metric.folder}/sweeps/"
        ):  # the table reads every sweep for its figures; a number's own is read by its training
            return stage != "tabulate"
        # the figures are drawn from all data sets, a number comes from its own
        prepared = f"data/{self.metric.profile}/prepared/"
        return (
            stage != "tabulate"
            or not path.startswith(prepared)
            or path.startswith(f"{prepared}{self.metric.dataset}/")
        )


def published(ledger: Ledger, metric: Metric) -> tuple[dict[Any, Any], tuple[str, ...]]:
    """The entry of a number in its table ({"value", ...}) and the cells it rests on; InputError
    for an unknown name."""
    file = ledger.root / metric.table
    if not file.exists():
        known = ["/".join(path.split("/")[1:3]) for path in ledger.tables()]
        asked = f"{metric.experiment}/{metric.profile}"
        raise InputError(
            "there is no table of that experiment and profile",
            where=metric.table,
            found=asked + nearest(asked, known),
            remedy="run `dvc repro`, or `dvc pull` for what others have computed",
        )
    table, apart = parts.here(file.parent), parts.lacking(file.parent)
    cells, arms = table.get("cells", {}), table.get("arms", {})
    if metric.key in cells:
        return pick(cells[metric.key], metric, apart), (metric.cell,)
    if metric.key in arms:
        return pick(arms[metric.key], metric, apart), members(cells, metric)
    raise InputError(
        "the table has no such cell",
        where=metric.table,
        found=metric.key + nearest(metric.key, [*cells, *arms]),
    )


def file_of(root: Path, metric: Metric) -> tuple[str, str]:
    """The file that holds a number, and who keeps that: git, or DVC's cache."""
    try:
        table = parts.in_git(root / metric.folder)
        pick(table["cells"].get(metric.key) or table["arms"][metric.key], metric)
        return metric.table, "git"
    except (DataError, InputError, KeyError, TypeError, AttributeError):
        rest = f"{metric.folder}/{parts.BREAKDOWNS}"
        return (rest, "DVC") if (root / rest).is_file() else (metric.table, "git")


def members(cells: dict[Any, Any], metric: Metric) -> tuple[str, ...]:
    """The cells of an arm: one for each seed."""
    names = (
        key.removeprefix(f"{metric.dataset}/")
        for key in cells
        if key.startswith(f"{metric.dataset}/")
    )
    return tuple(sorted(name for name in names if SEED.sub("", name) == metric.cell))


def pick(entry: dict[Any, Any], metric: Metric, apart: bool = False) -> dict[Any, Any]:
    """The number of that name inside a cell's entry: a bare name lies under `metrics`, a longer one
    is a path. `apart`: the breakdowns of the entry are not here.

    InputError where there is nothing of that name, or a group of numbers.
    """
    place = entry
    bare = len(metric.name) == 1 and not isinstance(entry.get(metric.name[0]), dict)
    for part in ("metrics", *metric.name) if bare else metric.name:
        if not isinstance(place, dict) or part not in place:
            known = place if isinstance(place, dict) else {}
            if apart:
                raise InputError(
                    "metrics.json has no such metric, and the breakdowns are not here",
                    where=f"{metric.folder}/{parts.BREAKDOWNS}",
                    found=part + nearest(part, known),
                    remedy=parts.REMEDY,
                )
            raise InputError(
                "there is no such metric",
                where=f"{metric.table}: {metric.key}",
                found=part + nearest(part, known),
            )
        place = place[part]
    number = place if isinstance(place, dict) else {"value": place}
    told = number.get("value", number.get("mean"))
    if isinstance(told, bool) or not isinstance(told, (int, float)):
        below = (
            f"a group of: {', '.join(sorted(place))}" if isinstance(place, dict) else f"{place!r}"
        )
        raise InputError(
            "that address holds no number",
            where=f"{metric.table}: {metric.key}/{'/'.join(metric.name)}",
            found=below,
            expected="the address of one metric",
            remedy="add the name of one of the group" if isinstance(place, dict) else "",
        )
    return number


def walk(ledger: Ledger, metric: Metric, cells: tuple[str, ...]) -> Chain:
    """Follow the records from the table to the raw files."""
    chain = Chain(metric, cells)
    table = ledger.owner(metric.table)
    chain.files[metric.table] = table
    seen, queue = {}, [table] if table else []
    while queue:
        node = queue.pop()
        if node.path in seen:
            continue
        seen[node.path] = node
        for path, described in node.record.get("inputs", {}).items():
            if chain.wanted(path, node.stage):
                chain.inputs.setdefault(path, []).append((node, described))
                chain.files[path] = owner = ledger.owner(path)
                queue += filter(None, (owner, ledger.gate(path)))
    order = list(PLACES)
    chain.nodes = sorted(seen.values(), key=lambda node: (-order.index(node.stage), node.path))
    for node in chain.nodes:
        chain.files[node.path] = node
        if node.stage in (
            "validate",
            "sweep",
            "train",
            "evaluate",
            "tabulate",
        ):  # what they made besides what was read on: history, predictions, table
            made = (
                path
                for path in node.record.get("outputs", {})
                if node.owns(path) and chain.wanted(path, node.stage)
            )
            chain.files |= dict.fromkeys(made, node)
    return chain
