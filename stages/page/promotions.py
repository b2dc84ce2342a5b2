"""The promotion ledger (reports/ledger.jsonl) as the page shows it: one row an entry, the newest
first, and who is champion.

The lines are read here anew, without the code that writes them: an entry counts as far as its
number, the SHA-256 of the line before it (`previous`) and that of its own other fields (`digest`)
agree; the first that does not is named and ends the table. Errors are RMSE per component, kn; the
interval is that of the difference challenger - champion.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

LEDGER = Path("reports/ledger.jsonl")
TITLES = (
    "no.",
    "time (UTC)",
    "verdict",
    "challenger RMSE [kn]",
    "against RMSE [kn]",
    "difference [kn], 90 %",
    "slices",
    "drift",
    "champion after",
    "reason",
)


def entries() -> tuple[list[dict[str, Any]], str]:
    """The entries as far as the chain holds, and a sentence where it breaks ("" where it does
    not)."""
    lines = (
        LEDGER.read_bytes().decode("utf-8", errors="replace").split("\n")
        if LEDGER.exists()
        else [""]
    )
    found: list[dict[str, Any]] = []
    previous = ""
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):  # what follows the last line's end
            break
        try:
            entry = json.loads(line)
            own = {key: value for key, value in entry.items() if key != "digest"}
            sound = (entry["number"], entry["previous"], entry["digest"]) == (
                number,
                previous,
                sha256(json.dumps(own, sort_keys=True, allow_nan=False, ensure_ascii=False)),
            )
        except (ValueError, KeyError, AttributeError):
            sound = False
        if not sound:
            return (
                found,
                (
                    f"The ledger is broken at line {number}: it is not what was written, and "
                    "nothing from there on is shown."
                ),
            )
        found.append(entry)
        previous = sha256(line)
    return found, ""


def sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def row(entry: dict[str, Any]) -> tuple[str, ...]:
    """An entry's cells; '–' for what was not measured."""
    errors, by = entry.get("rmse_component_kn") or {}, entry.get("difference_kn")
    kn = [f"{errors[side]:.2f}" if side in errors else "–" for side in ("challenger", "against")]
    against = f"{kn[1]} ({entry['against']})" if "against" in errors else kn[1]
    difference = f"{by['value']:+.2f} [{by['low']:+.2f}, {by['high']:+.2f}]" if by else "–"
    return (
        str(entry["number"]),
        entry["time"].replace("T", " ").removesuffix("Z"),
        entry["kind"],
        kn[0],
        against,
        difference,
        str((entry.get("evaluation") or {}).get("slices", "–")),
        (entry.get("drift") or {}).get("state", "–"),
        entry["after"][:12] or "none",
        " ".join(entry["reasons"]),
    )


def view() -> dict[str, Any]:
    """What the page shows: titles and rows of text, the champion in a sentence, and where the
    ledger breaks."""
    found, broken = entries()
    rows = tuple(row(entry) for entry in reversed(found))
    after = found[-1]["after"] if found else ""
    said = f"The champion now: {after[:12]}." if after else "There is no champion."
    return {"titles": TITLES, "rows": rows, "champion": "" if broken else said, "broken": broken}
