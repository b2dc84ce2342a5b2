"""A prepared data set as rows, with where each came from: what `tradewind rows` asks.

Of winds a row is a target of its split, or context of one at the split's own lead (prepared.json);
which aircraft flew it stands in the decoded winds under the same file and record, and of climbs in
the raw file at that row. Files are read only if they are the recorded bytes.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError, InputError, IntegrityError
from stages.files import read_json, sha256
from stages.params import nearest
from stages.splits import SPLITS

AIRCRAFT = ("AIRCRAFT", "icao")  # columns of raw files of flights that name the aircraft


@dataclass
class PreparedRows:
    """What a prepared data set holds, one entry a row (set, sequence): where it came from, and its
    place in each split.

    N rows. `roles`: (split, role) -> N bool. What is not stored is None, and `missing` says so in
    words.
    """

    dataset: str
    noun: str
    files: list[str]
    source: np.ndarray  # N, which of `files`
    record: np.ndarray  # N, which record of that file
    roles: dict[tuple[str, str], np.ndarray]
    time_s: np.ndarray | None = None  # N
    flight: np.ndarray | None = None  # N
    group: np.ndarray | None = None  # N, what the reader said belongs together
    aircraft: np.ndarray | None = None  # N str
    missing: dict[str, str] = field(default_factory=dict)

    def side(self, split: str) -> np.ndarray:
        """N bool: whatever stands in a split, in any role."""
        return np.logical_or.reduce(
            [mask for (name, _), mask in self.roles.items() if name == split]
        )


def opened(address: str, root: Path = Path(".")) -> PreparedRows:
    """The prepared data set PROFILE/DATASET. InputError for an unknown one, IntegrityError where
    a file is not the recorded one."""
    root, parts = Path(root), address.strip("/").split("/")
    known = [
        "/".join(file.parts[-4:-3] + file.parts[-2:-1])
        for name in ("prepared", "sets", "sequences")
        for file in sorted(root.glob(f"data/*/prepared/*/{name}.json"))
    ]
    if address.strip("/") not in known or len(parts) != 2:
        raise InputError(
            "there is no such prepared data set",
            found=address + nearest(address, known),
            expected="PROFILE/DATASET",
            remedy="run `dvc repro` or `dvc pull`",
        )
    profile, dataset = parts
    folder = f"data/{profile}/prepared/{dataset}"
    record = read_json(root / f"data/{profile}/records/{dataset}.prepare.json")
    for path, described in record["outputs"].items():
        recorded(root, path, described)
    if (root / folder / "prepared.json").exists():
        return winds(root, address.strip("/"), folder, record)
    return examples(root, address.strip("/"), folder, record)


def recorded(root: Path, path: str, described: dict[Any, Any]) -> None:
    """IntegrityError where a file is not the one that was recorded, DataError where it is not
    here."""
    if not (root / path).is_file():
        raise DataError("a file is missing", where=path, remedy="run `dvc repro` (or `dvc pull`)")
    if (found := sha256(root / path)) != described["sha256"]:
        raise IntegrityError(
            "a file is not the one that its record names: its rows answer nothing",
            where=path,
            expected=described["sha256"],
            found=found,
            remedy="`dvc checkout`, or `tradewind audit` a number that rests on it",
        )


def winds(root: Path, address: str, folder: str, record: dict[Any, Any]) -> PreparedRows:
    """Prepared winds, with the aircraft of each row as the decoded winds name it."""
    import polars as pl

    meta = read_json(root / folder / "prepared.json")
    table = pl.read_parquet(
        root / folder / "rows.parquet", columns=["t_s", "split", "flight", "file", "record"]
    )
    times, split = table["t_s"].to_numpy(), table["split"].to_numpy()
    roles = {(name, "targets"): split == k for k, name in enumerate(SPLITS)}
    roles |= {(name, "context"): context(times, meta, name) for name in SPLITS}
    source, number, flight = (table[name].to_numpy() for name in ("file", "record", "flight"))
    held = PreparedRows(address, "rows", meta["files"], source, number, roles, times, flight)
    decoded = next((path for path in record["inputs"] if path.endswith("/winds.parquet")), "")
    if not (root / decoded).is_file():
        held.missing["aircraft"] = (
            f"rows.parquet stores no aircraft, and {decoded or 'the decoded winds'}, where it "
            "stands, is not here"
        )
        return held
    recorded(root, decoded, record["inputs"][decoded])
    key = ["file", "record"]
    names = pl.read_parquet(root / decoded, columns=[*key, "icao"]).unique(
        key, keep="first", maintain_order=True
    )
    wanted = table.select(pl.Series("file", np.array(meta["files"], str)[source]), "record")
    found = wanted.join(names, on=key, how="left", maintain_order="left")["icao"]
    held.aircraft = found.fill_null("").to_numpy().astype(str)
    return held


def context(times: np.ndarray, meta: dict[Any, Any], split: str) -> np.ndarray:
    """N bool: the rows that are context of a target slice of `split` at the split's own lead
    (thesis C.1; winds/slices.py)."""
    starts = (
        meta["t0_s"]
        + meta["slice_s"] * np.array(meta["slices"][split], float)
        - meta["lead_s"]
        - meta["slice_s"]
    )
    marks = np.zeros(len(times) + 1, np.int64)
    np.add.at(marks, np.searchsorted(times, starts), 1)
    np.add.at(marks, np.searchsorted(times, starts + meta["slice_s"]), -1)
    return np.cumsum(marks)[:-1] > 0


def examples(root: Path, address: str, folder: str, record: dict[Any, Any]) -> PreparedRows:
    """Prepared sets of points, or sequences."""
    from safetensors import SafetensorError, safe_open

    noun = "sequences" if (root / folder / "sequences.json").exists() else "sets"
    meta, path = read_json(root / folder / f"{noun}.json"), f"{folder}/{noun}.safetensors"
    try:
        with safe_open(root / path, "numpy") as file:
            split, source, number, group = (
                file.get_tensor(name) for name in ("split", "source", "record", "group")
            )
    except (SafetensorError, OSError) as error:
        raise DataError(
            "the prepared file holds no provenance",
            where=path,
            found=str(error),
            expected="split, source, record, group",
            remedy="prepare the data set again (`dvc repro`)",
        ) from None
    roles = {(name, noun): split == k for k, name in enumerate(SPLITS)}
    held = PreparedRows(address, noun, meta["files"], source, number, roles, group=group)
    told = f"{Path(path).name} stores of each of its {noun} the file, record, group and split"
    held.missing = dict.fromkeys(("day", "flight", "aircraft"), told)
    if meta.get("kind") == "climb":
        fly(root, held, record)
    return held


def fly(root: Path, held: PreparedRows, record: dict[Any, Any]) -> None:
    """The aircraft of each climb: the raw file names it in the row where the flight begins."""
    import polars as pl

    named = np.full(len(held.source), "", object)
    for number, name in enumerate(held.files):
        path = next((path for path in record["inputs"] if path.endswith(f"/{name}")), "")
        if not (root / path).is_file():
            held.missing["aircraft"] = f"the aircraft stands in {path or name}, which is not here"
            return
        recorded(root, path, record["inputs"][path])
        try:
            table = pl.read_csv(root / path, infer_schema=False)
        except pl.exceptions.PolarsError as error:
            raise DataError(
                "a raw file of flights cannot be read", where=path, found=str(error).split("\n")[0]
            ) from None
        column = next((column for column in AIRCRAFT if column in table.columns), None)
        if column is None:
            held.missing["aircraft"] = (
                f"{path} names no aircraft (columns {', '.join(table.columns)})"
            )
            return
        mine = held.source == number
        if mine.any() and held.record[mine].max() >= len(table):
            raise DataError(
                "a sequence is of a row that its raw file does not have",
                where=path,
                found=str(held.record[mine].max()),
                expected=f"less than {len(table)}",
                remedy="prepare the data set again (`dvc repro`)",
            )
        named[mine] = table[column].fill_null("").to_numpy()[held.record[mine]]
    held.aircraft = np.char.upper(named.astype(str))
    del held.missing["aircraft"]
