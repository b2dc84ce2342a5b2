"""Rules on the joint nowcast's tasks: the raw files as acquired; splits that share nothing; nothing
known that is newer than declared; what the exact laws promise comes true (the shares of targets
within their 50 % and 90 % intervals), and to read more makes them more likely. Of a real sky: no
task reads outside of its strips, and nothing that trains stands in the strips of others."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages import files, runner
from stages.scores.scores import covered
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired
from stages.winds.joint import kept
from stages.winds.joint.law import READS
from stages.winds.joint.layout import SKY, SPLITS
from stages.winds.joint.reanalysis import margin
from stages.winds.joint.settings import Made, Real, Told, joint_of, made_of

MODULE = "stages.winds.joint.validate"
WRONG = "what is called exact is not: look at stages/winds/joint/law.py"
LATE = "something is known before it can be: look at stages/winds/joint/tasks.py"
WHOLE = [
    *MANIFEST,
    Rule("joint.tasks", "splits", "tasks", "critical", "a split is empty", low=1),
    Rule("joint.leak", "splits", "shared", "critical",
         "tasks that stand in the other split, too: their streams are one", high=0),
    Rule("joint.late", "splits", "early", "critical", LATE, high=0),
]  # fmt: skip
RULES = [
    *WHOLE,
    Rule("joint.coverage", "splits", "coverage_off", "critical", WRONG, high=0.06),
    Rule("joint.more", "splits", "lost", "critical",
         "who reads both sources does worse than who reads one: the exact law is wrong", high=0.0),
]  # fmt: skip


REAL = [
    *WHOLE,
    Rule("joint.strips", "splits", "outside", "critical",
         "tasks that read outside of their strips: look at stages/winds/joint/reanalysis.py",
         high=0),
    Rule("joint.nodes", "splits", "trained", "critical",
         "longitudes that train lie in this split's strips", high=0),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = joint_of(asked.parameters, asked["profile"]).datasets
    runner.known("joint nowcast", asked["dataset"], known)
    told = made_of(asked.parameters, asked["dataset"])

    def gather(
        raw: Path, prepared: Path, judged: dict[str, str]
    ) -> tuple[dict[str, Table], list[Rule]]:
        if isinstance(told, Real):
            return summed_real(raw, prepared, judged, told), REAL
        return summed(raw, prepared, judged, told), RULES

    return stage.work(asked, MODULE, "prepared", gather, {"made": told.model_dump(mode="json")})


def early(tasks: Any, told: Told) -> int:
    """How many reports and grids are newer, and targets sooner, than is declared."""
    reports = (tasks.context_x[..., 3] > 0) & tasks.real
    grids, targets = tasks.age < told.weather.age_h[0], tasks.target_x[..., 3] < told.lead_min[0]
    return int(reports.sum() + grids.sum() + targets.sum())


def summed(raw: Path, prepared: Path, judged: dict[str, str], told: Made) -> dict[str, Table]:
    """The summaries of a set."""
    manifest, about = files.read_json(raw / "manifest.json"), kept.about(prepared)
    parts, rows = {split: kept.read(prepared, split) for split in SPLITS}, []
    seen = {split: {row.tobytes() for row in part.tasks.target_x} for split, part in parts.items()}
    for split, part in parts.items():
        shares = []
        for reads in READS:
            mean, sd = part.laws[reads]
            inside = (covered(mean, np.broadcast_to(sd[..., None], mean.shape),
                              part.tasks.target_y, level).mean() - level
                      for level in (0.5, 0.9))  # fmt: skip
            shares += [abs(float(one)) for one in inside]
        bounds = about["bound"][split]
        others: set[bytes] = set().union(*(seen[other] for other in seen if other != split))
        rows.append(
            {
                "split": split,
                "tasks": len(part),
                "shared": len(seen[split] & others),
                "early": early(part.tasks, told),
                "coverage_off": max(shares),
                "lost": max(0.0, max(bounds[one]["value"] for one in ("aircraft", "grid"))
                            - bounds["both"]["value"]),
            }
        )  # fmt: skip
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def summed_real(raw: Path, prepared: Path, judged: dict[str, str], told: Real) -> dict[str, Table]:
    """The summaries of a real sky."""
    manifest, rows = files.read_json(raw / "manifest.json"), []
    trains = load_file(prepared / SKY)["lon"]
    parts = {split: kept.read(prepared, split) for split in SPLITS}
    seen = {split: {row.tobytes() for row in part.tasks.target_x} for split, part in parts.items()}
    for split, part in parts.items():
        strips, others = getattr(told.strips_deg, split), set[bytes]()
        others = others.union(*(seen[other] for other in seen if other != split))
        lat, lon = part.where[:, 0], part.where[:, 1]
        wide = margin(lat, told.axes)
        within = [(lon - wide >= west) & (lon + wide <= east) for west, east in strips]
        inside = [(trains >= west) & (trains <= east) for west, east in strips]
        rows.append(
            {
                "split": split,
                "tasks": len(part),
                "shared": len(seen[split] & others),
                "early": early(part.tasks, told),
                "outside": int((~np.logical_or.reduce(within)).sum()),
                "trained": int(np.logical_or.reduce(inside).sum()),
            }
        )
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = (
        "Judge the joint nowcast's tasks: splits, times, and whether their exact laws are exact."
    )
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
