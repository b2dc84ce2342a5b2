"""The validation stage: data/P/raw/D and data/P/decoded/D (of sets of points and of sequences,
data/P/prepared/D) in, data/P/validated/D.json out.

What is judged depends on how far the set reaches: raw files and drop counts always; frame files
where it enters as frames; states and winds where decode wrote them. A set that the profile prepares
must reach winds.
"""

from pathlib import Path

import polars as pl

from stages import files, records
from stages.errors import DataError
from stages.fields import validation as sets
from stages.params import Profile
from stages.sequences import validation as sequences
from stages.validation import gate
from stages.winds.validation import frames, states, winds

CODE = ("stages/validation",)


def run(profile: Profile, dataset: str) -> None:
    """Judge one data set. GateError on a critical failure, JudgeError if GX fails, DataError for
    missing or unreadable files."""
    cell = f"{profile.profile}/{dataset}"
    data = Path("data") / profile.profile
    part = (
        sets if dataset in profile.problems else sequences if dataset in profile.sequences else None
    )
    raw, made, out = (
        data / "raw" / dataset,
        data / ("prepared" if part else "decoded") / dataset,
        data / "validated" / f"{dataset}.json",
    )
    with files.guard(f"validate/{cell}"), records.timed("validate", cell):
        judged = {path.as_posix(): files.sha256(path) for path in records.files_in([raw, made])}
        tables, rules = (
            (part.tables(raw, made, judged), part.RULES)
            if part
            else gather(raw, made, dataset in profile.wind, judged)
        )
        results, internal = gate.judge(tables, rules)
        gate.decide(gate.verdict_of(profile.profile, dataset, results, internal, judged), out)
        record = records.make(
            "validate",
            cell,
            inputs=[raw, made],
            outputs={out.as_posix(): out},
            code=CODE,
            params={"wind": dataset in profile.wind},
        )
        files.write_json(records.location("validate", profile.profile, dataset), record)


def gather(
    raw: Path, decoded: Path, wind: bool, judged: dict[str, str]
) -> tuple[dict[str, gate.Table], list[gate.Rule]]:
    """All summaries of a data set and the rules on them. A parquet file that Polars cannot read
    is a DataError."""
    manifest, counts = (
        files.read_json(raw / "manifest.json"),
        files.read_json(decoded / "counts.json"),
    )
    found, rules = frames.tables(raw, manifest, judged, counts), frames.rules(wind)
    for path, part in ((decoded / "states.parquet", states), (decoded / "winds.parquet", winds)):
        if path.exists():
            try:
                if wind or pl.scan_parquet(path).head(1).collect().height:
                    found |= part.tables(path)
            except (pl.exceptions.ComputeError, OSError) as error:
                raise DataError(
                    "a table cannot be read",
                    where=str(path),
                    found=str(error),
                    remedy="decode the data set again",
                ) from None
            rules = [*rules, *part.RULES]
        elif wind and part is winds:
            raise DataError(
                "the profile prepares this set, but decode made no winds of it",
                where=str(path),
                remedy="take it off profiles.*.wind in params.yaml, or look at the drops in "
                "counts.json",
            )
    return found, rules
