"""Document R's claim of real series as a check: holds, fails or undecided (claims.py of the family
says how)."""

from pathlib import Path
from typing import Any

from stages.claims.levels import Side, lacking
from stages.claims.parts import Evaluation, conclude
from stages.dynamics.claims import OTHERWISE, VPT, better, side, variants
from stages.files import read_json
from stages.spreads import Spreads

RECURRENT = ("lstm", "gru", "rhn")
# What has learned outlasts the mean: of real series that a network stays behind a linear rival is a
# result, as it is of nearly all that R prints.
RIVAL = "mean"


def d9(measured: Evaluation) -> dict[Any, Any]:
    """The pre-LN transformer against every recurrent network."""
    pre, parts = side(measured, "transformer", "pre", VPT), []
    for model in RECURRENT:
        for arm in variants(measured, model, OTHERWISE):
            parts.append(better(measured, f"{pre.arm} > {arm}", pre, Side(arm, VPT), RIVAL))
    if not parts:
        parts.append(lacking(measured, "recurrent networks", [Side("rhn-base", VPT)]))
    note = (
        "'robust' is read as valid for longer than each recurrent network, on every set; R says it "
        "of seven sets, its networks chosen by a sweep"
    )
    text = "Pre-LN transformers are robust across the seven real series."
    return conclude(measured, "D-9", text, "gating, tables 6 and 7", parts, note)


def check(home: Path) -> list[dict[Any, Any]]:
    """The claim on every set under `home`."""
    spreads = Spreads.read(home)
    files = sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    return [d9(Evaluation(file.parent.name, read_json(file)["cells"], spreads)) for file in files]
