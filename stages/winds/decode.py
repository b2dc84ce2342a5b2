"""The decode stage: data/P/raw/D -> data/P/decoded/D (decoding/transform.py says how)."""

import sys
from collections.abc import Sequence
from pathlib import Path

from stages import files, records, runner
from stages.errors import DataError
from stages.params import Decode
from stages.winds.decoding.transform import transform


def plan(asked: runner.Asked) -> runner.Work:
    """Decode a data set of the profile. InputError for a data set without winds."""
    profile, dataset = asked["profile"], asked["dataset"]
    where = f"profiles.{profile}.datasets"
    runner.known("data set", dataset, asked.profile.datasets, where)
    entry, limits = asked.parameters.datasets[dataset].entry, asked.parameters.decode
    raw, final = asked.data("raw"), asked.data("decoded")

    def do() -> dict[str, Path]:
        decode(raw, final, entry, limits)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="decode",
        cell=f"{profile}/{dataset}",
        record=records.location("decode", profile, dataset),
        do=do,
        inputs=[raw],
        code=["stages.winds.decode"],
        params={"decode": limits.model_dump(mode="json"), "entry": entry},
    )


def decode(raw: Path, final: Path, entry: str, limits: Decode) -> None:
    """Decode the files of `raw`, which enter as `entry`, into `final`, which is called as the data
    set is. DataError where the raw folder is not what its manifest says."""
    manifest = files.read_json(raw / "manifest.json")
    if manifest.get("entry") != entry:
        raise DataError(
            "the raw data enter at another level",
            where=str(raw / "manifest.json"),
            expected=entry,
            found=str(manifest.get("entry")),
            remedy="acquire the data set again (`dvc repro`)",
        )
    with files.atomic_folder(final) as folder:
        counts = transform(raw, sorted(manifest["files"]), entry, limits, folder)
        head = {"stage": "decode", "dataset": final.name, "entry": entry}
        files.write_json(folder / "counts.json", head | counts)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Decode a data set: raw frames, states or winds to the winds table."
    return runner.command("stages.winds.decode", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
