"""One capture judged on its own, before it is taken in: can it be read, decoded, and would it pass
the validation gate?

It is decoded alone into `.work/retraining/inspection` and put before the rules of
stages/validation, with these left out, since one hour, perhaps of one aircraft, cannot answer them
(the gate of the whole data set does): raw.files and raw.bytes (nothing is acquired yet), winds.rows
(at least one wind is asked here, of every decode step by counts.kept), winds.constant (one aircraft
may keep its level all the time) and winds.stuck (a share of aircraft, of which there may be two).
Everything here depends on the bytes alone, never on the clock. Times are Unix seconds.
"""

import shutil
from pathlib import Path

import polars as pl

from stages import files, records
from stages.errors import DataError, JudgeError
from stages.params import Decode
from stages.validation import gate
from stages.winds.decoding.transform import transform
from stages.winds.modes import frames
from stages.winds.retraining.captures import linked
from stages.winds.retraining.intake import INCOMING, Verdict
from stages.winds.validate import gather

WORK = files.WORK / "retraining" / "inspection"
WHOLE_SET = ("raw.files", "raw.bytes", "winds.rows", "winds.constant", "winds.stuck")


def inspect(capture: Path, name: str, decode: Decode, work: Path = WORK) -> Verdict:
    """What one file of frames is worth; `name` is what it is called in reasons. The file is not
    touched.

    JudgeError where Great Expectations itself fails: then the capture is neither good nor bad.
    """
    shutil.rmtree(work, ignore_errors=True)
    raw, decoded = work / "raw", work / "decoded"
    for folder in (raw, decoded):
        folder.mkdir(parents=True)
    try:
        alone = raw / (name if name.endswith(".csv") else f"{name}.csv")
        linked(capture, alone)
        return _judged(alone, raw, decoded, decode)
    except DataError as error:
        told = (
            error.what,
            error.expected and f"expected {error.expected}",
            error.found and f"found {error.found}",
        )
        return Verdict((", ".join(filter(None, told)),))
    except (pl.exceptions.PolarsError, ValueError) as error:
        return Verdict(
            (f"decoding it failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}",)
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _judged(alone: Path, raw: Path, decoded: Path, decode: Decode) -> Verdict:
    """Read, decode, ask the rules."""
    reading = frames.read(alone)
    dropped = tuple(sorted(reading.dropped.items()))
    if reading.frames.is_empty():
        lines = ", ".join(f"{n} {reason}" for reason, n in dropped) or "the file is empty"
        return Verdict(
            (f"no line of {reading.read} holds a time and a frame: {lines}",),
            lines=reading.read,
            dropped=dropped,
        )
    files.write_json(
        raw / "manifest.json", {"entry": "frames", "files": {alone.name: records.describe(alone)}}
    )
    counts = transform(raw, [alone.name], "frames", decode, decoded)
    files.write_json(decoded / "counts.json", {"stage": "decode", "entry": "frames"} | counts)
    tables, rules = gather(True, raw, decoded, {})
    results, internal = gate.judge(tables, [rule for rule in rules if rule.name not in WHOLE_SET])
    if internal:
        raise JudgeError(
            "Great Expectations could not judge a capture",
            where=alone.name,
            found=str(internal[0]),
            remedy=f"it waits in {INCOMING}; mend the environment (`tradewind doctor`), then run "
            "again",
        )
    broken = [result for result in results if not result["success"]]
    reasons = tuple(
        f"{gate.found_text(result)}, allowed is {result['limit']}: {result['remedy']}"
        for result in broken
        if result["severity"] == "critical"
    )
    times = reading.frames["ts_s"]
    return Verdict(
        reasons,
        times[0],
        times[-1],
        reading.read,
        dropped,
        counts["levels"]["winds"]["kept"],
        tuple(result["name"] for result in broken if result["severity"] == "warning"),
    )
