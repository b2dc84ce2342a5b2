"""RO-Crate 1.1 of a release, by the profile Workflow Run Crate 0.5: which stage made what of what,
as ro-crate-metadata.json.

The workflow is dvc.yaml, its parts the experiments' declarations. Each run record becomes a
CreateAction: its instrument is the stage's module, its objects the files it read and its
parameters (PropertyValue), its results what it wrote; one more action for each profile says that
the whole workflow ran. Files in the bundle are File entities at their own paths; bytes that DVC
keeps (data, weights) are not in it and are described as CreativeWork with their SHA-256 and size.
Records hold no clock, so actions have no times.
"""

import json
import posixpath
from collections.abc import Iterable, Iterator
from typing import Any

from stages.audit.chain import Node
from stages.audit.commands import RUN
from stages.audit.hashes import read_lock
from stages.code import PACKAGE
from stages.exports import checks, citation
from stages.exports.columns import FORMATS
from stages.exports.tree import Tree

NAME = "ro-crate-metadata.json"
PROFILES = (
    "https://w3id.org/ro/wfrun/process/0.5",
    "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)
TERMS = "https://w3id.org/ro/terms/workflow-run#"
MAIN, LANGUAGE = "dvc.yaml", "https://dvc.org/"
KINDS = {
    "html": "text/html",
    "md": "text/markdown",
    "png": "image/png",
    "svg": "image/svg+xml",
    "yaml": "application/yaml",
    "lock": "application/yaml",
    "py": "text/x-python",
    "jsonl": "application/jsonl",
    "toml": "application/toml",
    "cff": "application/yaml",
}
Entity = dict[str, Any]


def describe(tree: Tree, about: dict[str, Any], made: dict[str, bytes]) -> Entity:
    """The whole crate as JSON-LD, entities sorted by @id after the first two. `made` are the
    bundle's members beside the commit's."""
    entities: dict[str, Entity] = {}
    profiles = sorted(
        {
            node.homes[0].split("/")[1 if node.homes[0].startswith("data/") else 2]
            for node in checks.read(tree)
        }
    )
    for entity in (*fixed(tree, about), *payload(tree, made), *processes(tree, profiles)):
        entities.setdefault(entity["@id"], {}).update(entity)
    parts = [name for name, entity in entities.items() if "File" in kinds(entity)]
    head = [
        {
            "@id": NAME,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": PROFILES[2]}],
        },
        root(
            tree,
            about,
            sorted(parts),
            [entity["@id"] for entity in entities.values() if "CreateAction" in kinds(entity)],
        ),
    ]
    return {
        "@context": [
            "https://w3id.org/ro/crate/1.1/context",
            {"sha256": f"{TERMS}sha256", "environment": f"{TERMS}environment"},
        ],
        "@graph": [*head, *(entities[name] for name in sorted(entities))],
    }


def kinds(entity: Entity) -> list[str]:
    """An entity's types."""
    return entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]


def root(tree: Tree, about: dict[str, Any], parts: list[str], actions: list[str]) -> Entity:
    """The crate itself."""
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"tradewind {about['version']}, commit {tree.commit.name[:12]}",
        "description": about["description"],
        "datePublished": tree.commit.date,
        "license": {"@id": licence_id(about)},
        "author": [{"@id": author_id(name)} for name in citation.authors(tree, about)],
        "identifier": f"urn:git:{tree.commit.name}",
        "version": about["version"],
        "conformsTo": refs(PROFILES),
        "mainEntity": {"@id": MAIN},
        "hasPart": refs(parts),
        "mentions": refs(sorted(actions)),
    }


def refs(names: Iterable[str]) -> list[Entity]:
    """References to entities."""
    return [{"@id": name} for name in names]


def licence_id(about: dict[str, Any]) -> str:
    """The address of the project's licence."""
    return f"https://spdx.org/licenses/{citation.licence(about)}"


def author_id(name: str) -> str:
    """An author's name in the crate."""
    return "#author-" + "-".join(name.lower().split())


def fixed(tree: Tree, about: dict[str, Any]) -> Iterator[Entity]:
    """Licence, authors, profiles, the language of the workflow, the workflow."""
    yield {
        "@id": licence_id(about),
        "@type": "CreativeWork",
        "name": citation.licence(about),
        "description": "The licence of the project's code and results.",
    }
    for name in citation.authors(tree, about):
        yield {"@id": author_id(name), "@type": "Organization", "name": name}
    for address, name, version in zip(
        PROFILES,
        ("Process Run Crate", "Workflow Run Crate", "Workflow RO-Crate"),
        ("0.5", "0.5", "1.0"),
        strict=True,
    ):
        yield {"@id": address, "@type": "CreativeWork", "name": name, "version": version}
    yield {
        "@id": LANGUAGE,
        "@type": "ComputerLanguage",
        "name": "Data Version Control pipeline",
        "alternateName": "DVC",
        "identifier": {"@id": LANGUAGE},
        "url": {"@id": LANGUAGE},
    }
    parts = [
        path
        for path in sorted(tree.modes)
        if posixpath.basename(path) == "dvc.yaml" and path != MAIN
    ]
    for path in (MAIN, *parts):
        yield {
            "@id": path,
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": f"{path}: stages of Tradewind",
            "programmingLanguage": {"@id": LANGUAGE},
        } | ({"hasPart": refs(parts)} if path == MAIN and parts else {})
    yield {
        "@id": MAIN,
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "input": [{"@id": "#input-params"}],
        "output": [{"@id": "#output-metrics"}],
    }
    yield formal(
        "#input-params", "params", "params.yaml: what can be set", [{"@id": "params.yaml"}]
    )
    yield formal(
        "#output-metrics",
        "metrics",
        "The published numbers",
        refs(tree.matching("reports/", "/metrics.json")),
    )


def formal(name: str, short: str, words: str, works: list[Entity]) -> Entity:
    """A formal parameter of the workflow and the files that stand for it."""
    return {
        "@id": name,
        "@type": "FormalParameter",
        "name": short,
        "description": words,
        "additionalType": "File",
        "valueRequired": True,
        "conformsTo": {"@id": "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"},
        "workExample": works,
    }


def payload(tree: Tree, made: dict[str, bytes]) -> Iterator[Entity]:
    """Every file of the bundle but the crate's own description and the manifest, which name each
    other's hashes from outside."""
    formats = FORMATS | KINDS
    for path in sorted((*tree.modes, *made)):
        content = made.get(path)
        size = len(tree.files[path]) if content is None else len(content)
        entity: dict[str, Any] = {
            "@id": quoted(path),
            "@type": "File",
            "name": path,
            "contentSize": str(size),
            "encodingFormat": formats.get(path.rpartition(".")[2], "text/plain"),
        }
        if path in tree.modes:
            entity["sha256"] = tree.sha256[path]
        if path in ("params.yaml",):
            entity["exampleOfWork"] = {"@id": "#input-params"}
        if path.startswith("reports/") and path.endswith("/metrics.json"):
            entity["exampleOfWork"] = {"@id": "#output-metrics"}
        if posixpath.basename(path) == "dvc.yaml":
            entity["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
        yield entity


def quoted(path: str) -> str:
    """A path as the @id of a file of the crate."""
    from urllib.parse import quote

    return quote(path, safe="/!$&'()*+,;=:@~-._")


def processes(tree: Tree, profiles: list[str]) -> Iterator[Entity]:
    """An action for every record, one for every profile's whole run, and what they speak of."""
    made = modules(tree)
    for module in sorted({*made.values(), PACKAGE}):
        yield {
            "@id": f"#{module}",
            "@type": "SoftwareApplication",
            "name": f"python -m {module}",
            "url": "https://www.python.org/",
            "softwareRequirements": "constraints.txt",
            "version": tree.commit.name[:12],
        }
    for node in checks.read(tree):
        yield from action(tree, node, made.get(node.homes[0], PACKAGE))
    for profile in profiles:
        mine = [
            node
            for node in checks.read(tree)
            if node.homes[0].startswith(f"data/{profile}/")
            or node.homes[0].split("/")[2] == profile
        ]
        results = sorted(
            {
                path
                for node in mine
                if node.stage == "tabulate"
                for path in node.record["outputs"]
                if path in tree.modes
            }
        )
        yield {
            "@id": f"#run-{profile}",
            "@type": "CreateAction",
            "name": f"`dvc repro` of profile {profile}",
            "instrument": {"@id": MAIN},
            "description": f"{len(mine)} stages; each has an action of its own",
            "object": refs(["params.yaml", *sources(tree, mine)]),
            "result": refs(map(quoted, results)),
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "agent": {"@id": agent(tree)},
        }


def modules(tree: Tree) -> dict[str, str]:
    """Place -> the module that a lock says made it."""
    found: dict[str, str] = {}
    for lock in (path for path in tree.modes if posixpath.basename(path) == "dvc.lock"):
        declared = tree.yaml(lock.replace("dvc.lock", "dvc.yaml"))
        for entry in read_lock(lock, tree.yaml(lock), declared):
            words = entry.cmd.split()
            if tuple(words[:3]) == RUN and len(words) > 3:
                found |= dict.fromkeys(entry.outs, words[3])
    return found


def agent(tree: Tree) -> str:
    """Who ran the workflow: the first author."""
    return author_id(citation.authors(tree, {})[0])


def sources(tree: Tree, nodes: list[Node]) -> list[str]:
    """What the acquisitions wrote: the data at the workflow's beginning."""
    return [
        identity(tree, path)
        for node in nodes
        if node.stage == "acquire"
        for path in sorted(node.record["outputs"])
    ]


def identity(tree: Tree, path: str) -> str:
    """The @id of a file: its path where the bundle holds it, else a name within the crate."""
    return quoted(path) if path in tree.modes else f"#{quoted(path)}"


def read_as(tree: Tree, path: str, described: dict[Any, Any]) -> str:
    """The @id of a file in the bytes that a record tells: another commit's have their own."""
    owner = tree.owner(path)
    made = described if owner is None or owner.error else owner.record["outputs"].get(path)
    earlier = path not in tree.modes and made != described
    return identity(tree, path) + (f"@{described['sha256'][:12]}" if earlier else "")


def action(tree: Tree, node: Node, module: str) -> Iterator[Entity]:
    """A record as an action of a module, with its parameters and the files outside the bundle that
    it names."""
    record, name = node.record, "#" + node.path.removesuffix(".json")
    values = {
        **record["params"],
        **({"seed": record["seed"]} if record.get("seed") is not None else {}),
    }
    given = [
        {
            "@id": f"{name}/{key}",
            "@type": "PropertyValue",
            "name": key,
            "value": json.dumps(value, sort_keys=True, ensure_ascii=False),
        }
        for key, value in sorted(values.items())
    ]
    environment = {
        "@id": f"{name}/environment",
        "@type": "PropertyValue",
        "name": "environment",
        "value": json.dumps(record["environment"], sort_keys=True),
    }
    for path, described in (*record["inputs"].items(), *record["outputs"].items()):
        if path not in tree.modes:
            yield {
                "@id": read_as(tree, path, described),
                "@type": "CreativeWork",
                "name": path,
                "sha256": described["sha256"],
                "contentSize": str(described["bytes"]),
            }
    yield from (*given, environment)
    yield {
        "@id": name,
        "@type": "CreateAction",
        "name": f"{node.stage} {record['cell']}",
        "instrument": {"@id": f"#{module}"},
        "description": f"Code digest {record['code']['digest']}, commit {tree.commit.name}.",
        "agent": {"@id": agent(tree)},
        "object": [
            *refs(read_as(tree, *one) for one in record["inputs"].items()),
            *refs(value["@id"] for value in given),
        ],
        "result": refs(identity(tree, path) for path in record["outputs"]),
        "environment": [{"@id": environment["@id"]}],
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "subjectOf": {"@id": quoted(node.path)},
    }
