"""What a tabulation wrote, derived again: metrics.json and claims.json from the evaluations,
table.md from metrics.json.

The declared command of the stage that tabulates is run again where the project is laid out
(laid.py), so that equality is to the byte; that its code is what the record names is checked
elsewhere (checks.code). Evaluations may not be here; the table needs none: metrics.json, the
printed values beside it, chosen settings and benchmarks, all in git, are enough for it.
"""

from collections.abc import Iterator
from pathlib import Path

from stages.audit import commands
from stages.audit.finding import Problem
from stages.audit.hashes import Locks
from stages.audit.laid import Laid
from stages.errors import TradewindError
from stages.files import json_text, read_json
from stages.tables.gather import over_seeds

HERE = "derived again from"
TABLE = ".again.md"


def derived(locks: Locks, laid: Laid, path: str, evaluated: bool) -> Iterator[Problem]:
    """What differs between a published table's files and the same derived again; `path` is its
    metrics.json, `laid` a copy of the project that one tabulation may write in.

    Without its evaluations here (`evaluated`), arms are derived from cells, the table from
    metrics.json, and claims are left.
    """
    home = path.rpartition("/")[0]
    try:
        content = read_json(laid.root / path)
        if not evaluated:
            arms = json_text(content | {"arms": over_seeds(content["cells"])})
            yield from told(laid.root, path, arms, "its own cells")
        command = commands.command(locks, path)
        for dep in locks.producer(path).deps:
            if evaluated or not dep.startswith(f"{home}/evaluated"):
                laid.link(dep)
        if evaluated:
            laid.run(command)
            for name in ("metrics.json", "claims.json", "table.md"):
                again = (laid.folder / home / name).read_text(encoding="utf-8")
                yield from told(laid.root, f"{home}/{name}", again, "the evaluations")
            return
        laid.link(path)
        laid.run(command, "--table", TABLE)
        again = (laid.folder / TABLE).read_text(encoding="utf-8")
        yield from told(laid.root, f"{home}/table.md", again, path)
    except (TradewindError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        said = (
            " ".join(str(error).split())
            if isinstance(error, TradewindError)
            else f"{type(error).__name__}: {error}"
        )
        yield Problem("FAIL", path, f"what rests on it cannot be {HERE} it: {said}")


def told(root: Path, path: str, again: str, source: str) -> Iterator[Problem]:
    """FAIL with the first line that differs, where a file is not the text derived for it."""
    try:
        now = (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return  # presence says so
    except UnicodeDecodeError:
        now = "(no text)"
    if now != again:
        yield Problem("FAIL", path, f"it is not what is {HERE} {source}: {differing(now, again)}")


def differing(now: str, again: str) -> str:
    """The first line that differs: what is written and what should be."""
    pairs = zip([*now.split("\n"), None], [*again.split("\n"), None], strict=False)
    number, (left, right) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    at = next(
        (
            n
            for n, pair in enumerate(zip(left or "", right or "", strict=False))
            if pair[0] != pair[1]
        ),
        0,
    )
    left, right = (
        "nothing" if line is None else repr(line[max(0, at - 40) :][:100]) for line in (left, right)
    )
    return f"line {number} is {left}, not {right}"
