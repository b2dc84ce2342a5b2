"""Croissant (MLCommons, format 1.0, JSON-LD) for every raw data set: what its files are, where they
are from, their hashes, columns, licence.

All is told by the run record of the acquisition, which git keeps, so a set needs not be on disk. A
pinned file is named by its URL; a file that we simulate has none and is named by its path in the
project, with the seed and the digest of the code that makes these very bytes.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from stages.audit.chain import Node
from stages.errors import DataError, InputError
from stages.exports import citation
from stages.exports.columns import FORMATS, LAYOUTS, TABLES
from stages.exports.tree import Tree, of_commit
from stages.files import write_json
from stages.params import nearest

CONFORMS = "http://mlcommons.org/croissant/1.0"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
# What the pins call a licence -> the address that names it for machines.
LICENCES = {
    "MIT": "https://spdx.org/licenses/MIT",
    "GPL-3.0": "https://spdx.org/licenses/GPL-3.0-only",
    "AGPL-3.0": "https://spdx.org/licenses/AGPL-3.0-only",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC-BY-ND-4.0": "https://creativecommons.org/licenses/by-nd/4.0/",
    "CC BY-SA": "https://creativecommons.org/licenses/by-sa/3.0/",
    "public domain": "https://creativecommons.org/publicdomain/mark/1.0/",
    "Copernicus licence (attribution)": "https://cds.climate.copernicus.eu/licences/"
    "licence-to-use-copernicus-products",
}
LINE = re.compile(r"(?m)^\|([^|]*`[^|]*)\|([^|]*)\|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|")


def export(folder: str | Path, root: Path = Path("."), names: tuple[str, ...] = ()) -> list[Path]:
    """Write PROFILE/DATASET.json for every acquired set of the commit (or those named so) and
    return the files.

    InputError for a name that no record has, and without a commit.
    """
    known = dict(every(of_commit(root)))
    for name in names:
        if name not in known:
            raise InputError(
                "no such data set was acquired",
                found=name + nearest(name, known),
                expected="PROFILE/DATASET",
            )
    written = []
    for name in names or known:
        written.append(Path(folder) / f"{name}.json")
        write_json(written[-1], known[name])
    return written


def every(tree: Tree) -> Iterator[tuple[str, dict[str, Any]]]:
    """("profile/dataset", its description), for every set that was acquired. DataError for a
    record that cannot be read."""
    told = facts(tree)
    for node in tree.nodes:
        if node.stage == "acquire":
            if node.error:
                raise DataError("a record cannot be read", where=node.path, found=node.error)
            _, profile, _, dataset = node.homes[0].split("/")
            yield (
                f"{profile}/{dataset}",
                describe(tree, node, profile, dataset, told.get(dataset, ("", ""))),
            )


def facts(tree: Tree) -> dict[str, tuple[str, str]]:
    """Data set -> (what it is, its units), from the tables of data/README.md and of families'
    data/FAMILY/README.md; {} without one."""
    tables = [file for file in tree.matching("data/", "/README.md") if file.count("/") <= 2]
    text = "\n".join(tree.files[file].decode("utf-8") for file in tables)

    def plain(cell: str) -> str:
        return cell.replace("`", "").strip()

    return {
        name: (plain(row[3]), plain(row[5]))
        for row in LINE.finditer(text)
        for name in re.findall(r"`(\w+)`", row[1])
    }


def describe(
    tree: Tree, node: Node, profile: str, dataset: str, told: tuple[str, str]
) -> dict[str, Any]:
    """One set as Croissant."""
    sources, outputs = citation.sources(node, tree), node.record["outputs"]
    files = {
        path.removeprefix(f"{node.homes[0]}/"): described for path, described in outputs.items()
    }
    objects = [
        file_object(node.homes[0], name, described, sources.get(name, {}))
        for name, described in files.items()
    ]
    simulated = (
        f"Simulated with seed {node.record['seed']} by code of digest "
        f"{node.record['code']['digest']}."
    )
    plan = citation.asked(node)
    live = plan.get("kind") == "captures"
    made = (
        simulated if citation.ours(node)
        else "Captured; each file's hash stands here." if live
        else "Asked of the Climate Data Store; each file's hash stands here." if plan.get("cds")
        else "Acquired by pinned hashes."
    )  # fmt: skip
    entry = plan.get("entry", "")
    words = (
        f"{told[0][:1].upper()}{told[0][1:]}." if told[0] else "",
        f"Units as delivered: {told[1]}." if told[1] else "",
        LAYOUTS.get(entry, ""),
        made,
        f"Data set `{dataset}` of Tradewind's profile `{profile}`, commit {tree.commit.name}.",
    )
    urls = sorted(
        {
            str(source["url"]).rpartition("/")[0] + "/"
            for source in sources.values()
            if source.get("url")
        }
    )
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": f"tradewind-{profile}-{dataset}".replace("_", "-"),
        "description": " ".join(filter(None, words)),
        "license": [LICENCES.get(name, name) for name in citation.licence_of(node, tree)],
        "url": urls[0] if urls else f"urn:git:{tree.commit.name}#{node.homes[0]}",
        "version": f"0.0.0+{tree.commit.name[:12]}",
        "datePublished": tree.commit.date,
        "creator": [
            {"@type": "sc:Organization", "name": name} for name in makers(tree, node, urls)
        ],
        "isLiveDataset": live,
        "citeAs": f"@misc{{tradewind, title={{Tradewind data set {profile}/{dataset}}}, "
        f"note={{commit {tree.commit.name}}}}}",
        "distribution": objects,
        "recordSet": [record_set(name) for name in files if name in TABLES],
    }


def makers(tree: Tree, node: Node, urls: list[str]) -> list[str]:
    """Who made the data: the project's authors, or the owners of the places it is from."""
    if citation.ours(node):
        return citation.authors(tree, {})
    owners = [
        re.sub(
            r"https?://(raw\.githubusercontent\.com/([^/]+)/([^/]+)|([^/]+)).*",
            lambda m: f"{m[2]}/{m[3]}" if m[2] else m[4],
            url,
        )
        for url in urls
    ]
    return sorted(set(owners)) or ["unknown"]


def file_object(
    home: str, name: str, described: dict[str, Any], source: dict[str, Any]
) -> dict[str, Any]:
    """A file: by its URL where it is pinned, else by its path in the project."""
    kind = FORMATS.get(PurePosixPath(name).suffix.lstrip("."), "application/octet-stream")
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": source.get("url") or f"{home}/{name}",
        "contentSize": f"{described['bytes']} B",
        "encodingFormat": kind,
        "sha256": described["sha256"],
    }


def record_set(name: str) -> dict[str, Any]:
    """The rows of a table with named columns."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows-of-{name}/{column}",
            "name": column,
            "description": meaning,
            "dataType": f"sc:{kind}",
            "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
        }
        for column, kind, meaning in TABLES[name]
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": f"rows-of-{name}",
        "name": f"rows-of-{name}",
        "field": fields,
    }
