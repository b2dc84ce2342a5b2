"""What Prefect's pages show of a run: names and tags of its tasks, and artifacts, the table of its
stages, what was decided, and how new data differ from those of the champion.

Artifacts are for eyes alone: no run fails for one that a busy server did not take.
"""

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SPINE = "dvc.yaml"  # whose stages DVC names without a file
HELD = ("number", "kind", "challenger", "before", "after", "raw", "reasons", "time")


def step(stage: str) -> str:
    """The step of a stage: `reports/chaos/dvc.yaml:train@mini-x` is a `train`; the file of an
    added folder (`captures.dvc`) is an `added`."""
    name = stage.rpartition(":")[2]
    return "added" if name.endswith(".dvc") else name.partition("@")[0]


@functools.cache
def commands(file: str) -> dict[str, str]:
    """The commands of a dvc.yaml by the names of its stages; {} of a file that is not here."""
    from ruamel.yaml import YAML

    if not Path(file).exists():
        return {}
    told = YAML(typ="safe").load(Path(file)).get("stages", {})
    return {name: str(one.get("do", one).get("cmd", "")) for name, one in told.items()}


def tags(stage: str) -> set[str]:
    """The family whose module a stage runs, and the folder of its dvc.yaml."""
    file = stage.rpartition(":")[0] or SPINE
    module = re.search(r"\bstages\.(\w+)", commands(file).get(step(stage), ""))
    return {*([module[1]] if module else []), *([Path(file).parent.name] if file != SPINE else [])}


def called(stage: str) -> dict[str, Any]:
    """The options of a stage's task."""
    return {"name": step(stage), "tags": tags(stage)}


def table(
    stages: Iterable[str], ended: dict[str, str], seconds: dict[str, float]
) -> list[dict[str, Any]]:
    """The rows of a run's table, the slowest first. `ended`: a stage's problem, "" where it ended
    well; seconds are those of this run, of stages that ended well."""
    rows: list[dict[str, Any]] = [
        {
            "stage": stage,
            "step": step(stage),
            "seconds": seconds.get(stage) if ended.get(stage) == "" else None,
            "ended": ("failed" if ended[stage] else "well") if stage in ended else "not begun",
        }
        for stage in stages
    ]
    return sorted(rows, key=lambda row: -(row["seconds"] or 0))


def show(kind: str, key: str, content: Any, words: str) -> None:
    """Leave an artifact of the run: `kind` table or markdown. What goes wrong with it is told."""
    from prefect import artifacts, get_run_logger

    try:
        if kind == "table":
            artifacts.create_table_artifact(table=content, key=key, description=words)
        else:
            artifacts.create_markdown_artifact(markdown=content, key=key, description=words)
    except Exception as error:  # a server's, a client's or a socket's
        get_run_logger().warning("the artifact %s was not kept: %s", key, type(error).__name__)


def show_stages(stages: Iterable[str], ended: dict[str, str], seconds: dict[str, float]) -> None:
    """The table of a run's stages, and its verdict."""
    rows = table(stages, ended, seconds)
    show("table", "stages", rows, "every stage of the run, by its seconds")
    failed = [stage for stage, problem in ended.items() if problem]
    said = f"**failed**: {', '.join(failed)}" if failed else f"**well**: {len(rows)} stages"
    show("markdown", "verdict", said, "how the run ended")


def show_entry(entry: dict[str, Any], drift: Path) -> None:
    """What retraining decided, as the ledger has it, and the report on drift it rests on."""
    rows = [
        {"what": key, "is": str(entry[key])} for key in HELD if entry.get(key) not in (None, "")
    ]
    show("table", "ledger-entry", rows, "what the ledger tells of this run")
    reasons = "\n".join(f"- {reason}" for reason in entry.get("reasons", []))
    show(
        "markdown", "verdict", f"**{entry['kind']}**\n\n{reasons}", "promoted, refused, or why not"
    )
    if drift.exists():
        told = json.loads(drift.read_text(encoding="utf-8"))
        text = f"```json\n{json.dumps(told, indent=1, sort_keys=True)}\n```"
        show("markdown", "drift", text, "how the new captures differ from the champion's data")
