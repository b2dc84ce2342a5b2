"""The raw files of a chain held to what pins them, and the decoder's counts to themselves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.audit.case import Case
from stages.audit.finding import Problem
from stages.audit.settings import dig
from stages.errors import DataError
from stages.files import read_json

COUNTS = re.compile(r"data/[^/]+/decoded/[^/]+/counts\.json")


def sources(case: Case) -> Iterator[Problem]:
    """The raw files are those that the manifest lists and that params.yaml pins."""
    owned: dict[str, list[str]] = {}
    for path, owner in case.chain.files.items():
        if owner:
            owned.setdefault(owner.path, []).append(path)
    for node in case.chain.nodes:
        if node.stage != "acquire" or node.error:
            continue
        manifest, dataset = f"{node.homes[0]}/manifest.json", Path(node.homes[0]).name
        listed = manifest_of(case.root / manifest)
        pinned = pins(case, dataset)
        for path in sorted(path for path in owned.get(node.path, ()) if path != manifest):
            if not node.owns(path):
                continue  # the record itself
            name, described = path.removeprefix(node.homes[0] + "/"), case.file_record(path) or {}
            pin = pinned.get(name)
            if name not in pinned and any(pinned.values()):
                place = listing(case, dataset) or f"datasets.{dataset}"
                text = f"{place} pins the files of this data set, and not this one"
                yield Problem("FAIL", path, text, node.producer)
            if listed is not None and (listed.get(name) or {}).get("sha256") != described.get(
                "sha256"
            ):
                yield Problem(
                    "FAIL",
                    manifest,
                    f"it does not list {name} with the recorded SHA-256",
                    node.producer,
                )
            if pin and pin != described.get("sha256"):
                place = listing(case, dataset) or f"datasets.{dataset}"
                yield Problem(
                    "FAIL",
                    path,
                    f"{place} pins {pin[:12]}, recorded is {str(described.get('sha256'))[:12]}",
                    node.producer,
                )


def counts(case: Case) -> Iterator[Problem]:
    """Every row that was read was kept or dropped for a reason: the decoder's counts add up."""
    for path in sorted(
        path for path in case.chain.files if COUNTS.fullmatch(path) and (case.root / path).is_file()
    ):
        try:
            for level in levels(read_json(case.root / path)):
                if level["read"] != level["kept"] + sum(level["dropped"].values()):
                    yield case.fails(
                        path,
                        f"its counts do not add up: {level['read']:,} read, {level['kept']:,} "
                        f"kept, {sum(level['dropped'].values()):,} dropped",
                    )
        except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
            yield case.fails(
                path, f"it does not hold counts of rows ({' '.join(str(error).split())})"
            )


def levels(content: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """Each mapping with a count of what was read, at whatever depth."""
    if "read" in content:
        yield content
    for part in content.values():
        if isinstance(part, dict):
            yield from levels(part)


def listing(case: Case, dataset: str) -> str | None:
    """The file that pins a data set of many files, None where the parameters do it themselves."""
    return dig(case.params, f"datasets.{dataset}.listed.listing")


def pins(case: Case, dataset: str) -> dict[str, str | None]:
    """Name -> SHA-256 of a data set's pinned files; a listing that is not here pins nothing
    (`presence` and acquisition say so)."""
    if place := listing(case, dataset):
        file = case.root / str(place)
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        return {
            parts[2]: parts[0]
            for parts in (line.split(" ", 2) for line in lines)
            if len(parts) == 3
        }
    return {
        name: (source or {}).get("sha256")
        for name, source in (dig(case.params, f"datasets.{dataset}.files") or {}).items()
    }


def manifest_of(file: Path) -> dict[Any, Any] | None:
    """The files a raw manifest lists; None where it is missing or no manifest (presence and disk
    say so)."""
    try:
        return read_json(file)["files"]
    except (DataError, KeyError, TypeError):
        return None
