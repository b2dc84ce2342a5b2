"""How to cite a release (CITATION.cff 1.2.0) and under which licences its data stand.

Names and licence are those of pyproject.toml and LICENSE; the date is the commit's. A data set's
licence is the one that its pins name in params.yaml and its record repeats; sets that we simulate
carry the project's own. Only those may be redistributed with a release.
"""

import json
import re
from typing import Any

from stages.audit.chain import Node
from stages.errors import DataError
from stages.exports.tree import Tree

HOLDER = re.compile(r"(?m)^Copyright \(c\) [\d, -]+ (.+)$")


def authors(tree: Tree, about: dict[str, Any]) -> list[str]:
    """The names in pyproject.toml; else whom LICENSE names. DataError where neither names
    anybody."""
    named = [one["name"] for one in about.get("authors", ()) if one.get("name")]
    found = (
        HOLDER.search(tree.files["LICENSE"].decode("utf-8")) if "LICENSE" in tree.modes else None
    )
    if not named and not found:
        raise DataError(
            "nobody is named as author",
            where="pyproject.toml, LICENSE",
            expected="project.authors, or a line `Copyright (c) YEAR NAME`",
        )
    return named or [found[1].strip()]  # type: ignore[index]  # one of the two is there


def cff(tree: Tree, about: dict[str, Any]) -> str:
    """CITATION.cff: YAML whose values are JSON strings, which YAML reads alike."""

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    lines = [
        "cff-version: 1.2.0",
        f"message: {text('If you use this software or its results, please cite it as below.')}",
        "type: software",
        f"title: {text('Tradewind: ' + about['description'].rstrip('.'))}",
        f"version: {text(about['version'])}",
        f"commit: {text(tree.commit.name)}",
        f"date-released: {text(tree.commit.date)}",
        f"license: {text(licence(about))}",
        "authors:",
    ]
    lines += [f"  - name: {text(name)}" for name in authors(tree, about)]
    lines += [
        "keywords:",
        *(
            f"  - {text(word)}"
            for word in ("reproducible research", "attention", "irregular data", "wind nowcasting")
        ),
    ]
    return "\n".join(lines) + "\n"


def licence(about: dict[str, Any]) -> str:
    """The project's SPDX name."""
    told = about.get("license", "MIT")
    return told if isinstance(told, str) else told.get("text", "MIT")


def asked(node: Node) -> dict[str, Any]:
    """What an acquisition was asked for: its section of params.yaml, as the record has it."""
    found = node.record["params"].get("dataset")
    return found if isinstance(found, dict) else {}


def sources(node: Node, tree: Tree) -> dict[str, dict[str, Any]]:
    """Name -> {url, licence, sha256, bytes} of a set's pinned files; {} for one that is
    simulated or asked of a service."""
    plan = asked(node)
    if listed := plan.get("listed"):
        lines = (
            tree.files[listed["listing"]].decode("utf-8").splitlines()
            if listed["listing"] in tree.modes
            else []
        )
        parts = [line.split(" ", 2) for line in lines]
        return {
            name: {
                "url": listed["base"] + name,
                "licence": listed["licence"],
                "sha256": digest,
                "bytes": int(size),
            }
            for digest, size, name in parts
        }
    return dict(plan.get("files") or {})


def ours(node: Node) -> bool:
    """Whether a set is simulated here: nothing of it is pinned, listed, asked of a service or
    captured."""
    plan = asked(node)
    return (
        bool(plan)
        and not (plan.get("files") or plan.get("listed") or plan.get("cds"))
        and plan.get("kind") not in ("archive", "captures", "files", None)
    )


def licence_of(node: Node, tree: Tree) -> list[str]:
    """The licences of a set's files, sorted; the project's own for one that is simulated here."""
    if ours(node):
        return ["MIT"]
    service = "Copernicus licence (attribution)" if asked(node).get("cds") else "not stated"
    return sorted(
        {str(source.get("licence") or "not stated") for source in sources(node, tree).values()}
    ) or [service]


def licences(tree: Tree) -> str:
    """A table of every data set that the results rest on: licence, source, size; none of their
    bytes lie in a release unless they are ours."""
    lines = [
        "# Licences of the data",
        "",
        (
            "The bytes of data sets are not part of a release, but for those simulated here where "
            "it says so in its name (`-data`)."
        ),
        "",
        "| set | licence | source | files | bytes | may be passed on with a release |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for node in tree.nodes:
        if node.stage == "acquire" and not node.error:
            made = node.record["outputs"].values()
            urls = sorted(
                {
                    str(source["url"]).rpartition("/")[0]
                    for source in sources(node, tree).values()
                    if source.get("url")
                }
            )
            told = "simulated here" if ours(node) else ", ".join(urls) or "see the record"
            lines.append(
                f"| {node.homes[0].removeprefix('data/').replace('/raw/', '/')} | "
                f"{', '.join(licence_of(node, tree))} | {told} | {len(made)} | "
                f"{sum(one['bytes'] for one in made):,} | "
                f"{'yes' if ours(node) else 'no: fetch it from its source'} |"
            )
    return "\n".join(lines) + "\n"
