"""The prepare stage: data/P/decoded/D and the open gate data/P/validated/D.json give
data/P/prepared/D (rows.py says how)."""

import sys
from collections.abc import Sequence
from pathlib import Path

from stages import files, records, runner
from stages.errors import DataError, GateError, IntegrityError, ParamsError
from stages.winds import rows, slices


def plan(asked: runner.Asked) -> runner.Work:
    """Prepare a data set of the profile. ParamsError for splits that break the law."""
    name, dataset, profile = asked["profile"], asked["dataset"], asked.profile
    where = f"profiles.{name}.prepare.{dataset}"
    if dataset not in profile.wind or dataset not in profile.prepare:
        raise ParamsError(
            "this data set is not prepared in this profile",
            where=where,
            found=dataset,
            expected=", ".join(profile.wind) or "(none)",
            remedy="name it in profiles.*.wind of params.yaml, and its splits under `prepare` in "
            f"stages/params/budgets/{name}/winds.yaml",
        )
    settings, wind_max_m_s = profile.prepare[dataset], asked.parameters.decode.wind_max_m_s
    slices.check(settings, where)
    winds, final = asked.data("decoded") / "winds.parquet", asked.data("prepared")
    gate = Path("data", name, "validated", f"{dataset}.json")

    def do() -> dict[str, Path]:
        check_gate(gate, winds)
        with files.atomic_folder(final) as folder:
            rows.prepare(winds, folder, settings, wind_max_m_s, name, dataset)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{name}/{dataset}",
        record=records.location("prepare", name, dataset),
        do=do,
        inputs=[winds, gate],
        code=["stages.winds.prepare"],
        params={
            "prepare": settings.model_dump(mode="json", exclude_none=True),
            "wind_max_m_s": wind_max_m_s,
        },
    )


def check_gate(gate: Path, winds: Path) -> None:
    """The gate must have passed these very bytes: GateError if it is shut, IntegrityError if it
    judged another file."""
    verdict = files.read_json(gate)
    if verdict.get("success") is not True:
        raise GateError(
            "the data did not pass validation",
            where=str(gate),
            remedy="see its critical_failed, mend the data",
        )
    judged = verdict.get("judged", {}).get(winds.as_posix())
    if not winds.exists():
        raise DataError(
            "there are no winds to prepare",
            where=str(winds),
            remedy="decode the data set first (`dvc repro`)",
        )
    if judged != (found := files.sha256(winds)):
        raise IntegrityError(
            "validation judged other bytes than these",
            where=str(winds),
            expected=str(judged),
            found=found,
            remedy="run the validation again (`dvc repro`)",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a data set of winds: rows in slices and splits that models read."
    return runner.command("stages.winds.prepare", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
