"""What is wrong at one commit by itself: records that its own files contradict, and a table that
its record does not tell of."""

from stages.audit.chain import PLACES, Node
from stages.audit.earlier import History, meaning
from stages.audit.snapshot import Snapshot


def stale(side: Snapshot, nodes: dict[str, Node], history: History) -> list[str]:
    """Records of the cone that were made with other code, or of other inputs, than the commit
    holds."""
    found = []
    code = {
        path for node in nodes.values() if not node.error for path in node.record["code"]["files"]
    }
    committed, contents = side.sha256(code), side.read(code)

    def same(path: str, sha: str) -> bool:
        if committed.get(path) == sha:
            return True
        then = history.version_bytes(path, sha)
        known = then is not None and path in contents
        return known and meaning(path, then) == meaning(path, contents[path])

    for node in sorted(
        nodes.values(), key=lambda node: (list(PLACES).index(node.stage), node.path)
    ):
        if node.error:
            found.append(f"the record {node.path} cannot be used: {node.error}")
            continue
        other = sorted(
            path for path, sha in node.record["code"]["files"].items() if not same(path, sha)
        )
        if other:
            found.append(
                f"{node.producer} is stale: made with other code than the commit holds: "
                f"{few(other)}"
            )
        for path, readers in side.chain.inputs.items():
            owner = side.ledger.owner(path)
            made = owner.record.get("outputs", {}).get(path) if owner else None
            if made and any(
                reader is node and described["sha256"] != made["sha256"]
                for reader, described in readers
            ):
                found.append(
                    f"{node.producer} is stale: it read another {path} than {owner.producer} made"
                )
    return found


def few(names: list[str], most: int = 4) -> str:
    """Names, not too many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
