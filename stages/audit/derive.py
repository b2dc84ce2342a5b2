"""What a tabulation wrote, derived again: metrics.json, claims.json and figures from the
evaluations, table.md from the numbers.

The declared command of the stage that tabulates is run again where the project is laid out
(laid.py), so that equality is to the byte (of figures to the pixel); that its code is what the
record names is checked elsewhere (checks.code). Evaluations may not be here; the table needs none:
metrics.json and breakdowns.json, the printed values beside them, chosen settings and benchmarks are
enough for it.
"""

import io
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from stages import records
from stages.audit import commands
from stages.audit.commands import Command
from stages.audit.finding import Problem
from stages.audit.hashes import Locks
from stages.audit.laid import Laid
from stages.errors import TradewindError
from stages.files import json_text, read_json
from stages.tables import parts
from stages.tables.gather import over_seeds

HERE = "derived again from"
PNG = b"\x89PNG\r\n\x1a\n"
TABLE = ".again.md"
PICTURES = (".gif", ".png")  # outputs that are one file of bytes, no text


def derived(locks: Locks, laid: Laid, path: str, evaluated: bool) -> Iterator[Problem]:
    """What differs between a published table's files and the same derived again; `path` is its
    metrics.json, `laid` a copy of the project that one tabulation may write in.

    Without its evaluations here (`evaluated`) the table is derived from the numbers, if these are
    here, and claims are left.
    """
    home = path.rpartition("/")[0]
    try:
        content = read_json(laid.root / path)
        if not evaluated:
            yield from check_derived(laid.root, path, alone(content), "its own cells")
            if parts.lacking(laid.root / home):
                return  # presence says so
        command = commands.command(locks, path)
        deps = locks.producer(path).deps
        laid.link_all(dep for dep in deps if evaluated or not dep.startswith(f"{home}/evaluated"))
        told_by = f"{home}/records/"  # they tell of the process that ran, too
        trained = (laid.root / told_by).glob("*.train.json")  # some tables tell of rates
        laid.link_all(file.relative_to(laid.root).as_posix() for file in trained)
        if evaluated:
            outs = [out for out in locks.producer(path).outs if not out.startswith(told_by)]
            yield from written(laid, command, outs)
            return
        laid.link_all([path, f"{home}/{parts.BREAKDOWNS}"])
        laid.run(command, "--table", f"{home}/{TABLE}")
        again = (laid.folder / home / TABLE).read_text(encoding="utf-8")
        yield from check_derived(laid.root, f"{home}/table.md", again, path)
    except (TradewindError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        said = (
            " ".join(str(error).split())
            if isinstance(error, TradewindError)
            else f"{type(error).__name__}: {error}"
        )
        yield Problem("FAIL", path, f"what rests on it cannot be {HERE} it: {said}")


def alone(content: parts.Content) -> str:
    """The text of a metrics.json, its arms (of a whole one) made from its cells."""
    if parts.whole(content):
        return json_text(content | {"arms": over_seeds(content["cells"])})
    return parts.by_line(content) + "\n"


def written(laid: Laid, command: Command, outs: list[str]) -> list[Problem]:
    """What of a command's outputs differs from what it writes. A figure that does was drawn
    quicker (quicker.py): it is drawn again as its stage draws it."""
    for alone in (False, True):
        laid.run(command, alone=alone)
        found = [problem for out in outs for problem in same(laid, out, "the evaluations")]
        if not any(problem.path.endswith(".png") for problem in found):
            break
    return found


def same(laid: Laid, out: str, source: str) -> Iterator[Problem]:
    """FAIL for each file of an output that is not what was written again where the project is laid
    out, is not written there, or is there alone."""
    if not (laid.folder / out).is_dir():
        if (laid.folder / out).is_symlink():
            yield Problem("FAIL", out, "its command does not write it")
            return
        if out.endswith(PICTURES):
            if not (laid.root / out).is_file() or not alike(laid.root / out, laid.folder / out):
                verdict, why = drawn(laid.root)
                yield Problem(verdict, out, f"it is not what is {HERE} {source}{why}")
            return
        again = (laid.folder / out).read_text(encoding="utf-8")
        yield from check_derived(laid.root, out, again, source)
        return
    mine, others = (
        {file.relative_to(root / out).as_posix(): file for file in records.files_in([root / out])}
        for root in (laid.root, laid.folder)
    )
    for name in sorted(mine.keys() | others.keys()):
        if name not in others:
            yield Problem("FAIL", f"{out}/{name}", f"it is not among what is {HERE} {source}")
        elif others[name].is_symlink():
            yield Problem("FAIL", f"{out}/{name}", "its command does not write it")
        elif name in mine and not alike(mine[name], others[name]):
            verdict, why = drawn(laid.root)
            text = f"it is not what is {HERE} {source}{why}"
            yield Problem(verdict, f"{out}/{name}", text)


def alike(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes; pictures may be packed otherwise."""
    mine, theirs = one.read_bytes(), other.read_bytes()
    if mine == theirs or one.suffix != ".png":
        return mine == theirs
    beside = chunks(theirs)
    return beside is not None and beside == chunks(mine) and pixels(theirs) == pixels(mine)


def chunks(content: bytes) -> list[tuple[bytes, bytes]] | None:
    """Kind and content of the chunks of a PNG file, but for its pixels'; None of other bytes."""
    found, at = [], len(PNG)
    while content.startswith(PNG) and at + 12 <= len(content):
        size = int.from_bytes(content[at : at + 4])
        found.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + size]))
        at += size + 12
    return [one for one in found if one[0] != b"IDAT"] if at == len(content) else None


def pixels(content: bytes) -> bytes | None:
    """The pixels of a picture; None where it cannot be read."""
    from PIL import Image  # of the laboratory alone

    try:
        with Image.open(io.BytesIO(content)) as picture:
            return picture.tobytes()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def drawn(root: Path) -> tuple[str, str]:
    """What other bytes of a figure say: FAIL where this process draws with the library that
    constraints.txt names, else nothing."""
    named = re.search(r"(?m)^matplotlib==(\S+)", (root / "constraints.txt").read_text())
    here = metadata.version("matplotlib")
    if named and named[1] != here:
        return "INCONCLUSIVE", f" (with matplotlib {here}, where constraints.txt says {named[1]})"
    return "FAIL", ""


def check_derived(root: Path, path: str, again: str, source: str) -> Iterator[Problem]:
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
