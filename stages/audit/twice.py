"""What stands in two places of an evaluation is compared by the module that dvc.yaml names.

Which files of an evaluation tell the same thing, and how exactly, its family knows. dvc.yaml names
the module beside the stage (`meta: {agree: stages....}`, which makes nothing stale); it is called
with the evaluation's own words where the project is laid out.
"""

from collections.abc import Iterator
from pathlib import Path

from stages.audit import commands
from stages.audit.case import Case
from stages.audit.commands import Command
from stages.audit.finding import Problem
from stages.audit.laid import Laid
from stages.errors import TradewindError
from stages.files import read_json


def agreement(case: Case, laid: Laid, home: str) -> Iterator[Problem]:
    """What contradicts in the evaluation at `home`, which with all that it read is linked in
    `laid`; nothing where no module compares it."""
    entry = case.locks.producer(home)
    meta = commands.definition(case.locks, entry).get("meta") if entry else None
    module = meta.get("agree") if isinstance(meta, dict) else None
    if module is None:
        return
    out = f"{home.replace('/', '-')}.agree.json"
    try:
        command = Command(str(module), commands.command(case.locks, home).words)
        laid.run(command, "--out", out)
        found = read_json(laid.folder / out, list)
    except TradewindError as error:
        text = f"whether its files agree cannot be told: {' '.join(str(error).split())}"
        yield case.fails(home, text)
        return
    for path, text in found:
        yield case.fails(Path(path).as_posix(), f"it contradicts: {text}")


def evaluations(case: Case) -> list[str]:
    """The evaluated data sets whose every file and input is here, of the code of today."""
    return [
        node.homes[0]
        for node in case.chain.nodes
        if node.stage == "evaluate"
        and not node.error
        and not case.earlier(node)
        and all((case.root / path).is_file() for path in read_by(node.record))
    ]


def read_by(record: dict[str, dict[str, object]]) -> list[str]:
    """What is compared: an evaluation's outputs, and the data that it read."""
    inputs = (path for path in record["inputs"] if "/prepared/" in path)
    return [*record["outputs"], *inputs]
