"""The contexts stage: the neighbours of every training target, found once.

data/PROFILE/prepared/DATASET -> data/PROFILE/contexts/DATASET/{neighbours.npy, contexts.json}. What
a stopped run found lies under `.work`, keyed by settings, code and inputs; the next goes on there.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from stages import code, files, params, records, runner

MODULE = "stages.winds.contexts.find"


def plan(asked: runner.Asked) -> runner.Work:
    """Find the neighbours of a prepared data set of the profile. InputError for another."""
    profile, dataset = asked["profile"], asked["dataset"]
    runner.known("data set", dataset, asked.profile.wind, f"profiles.{profile}.wind")
    settings, threads = asked.parameters.contexts, asked.parameters.training.threads
    prepared, final = asked.data("prepared"), asked.data("contexts")

    def do() -> dict[str, Path]:
        find(prepared, final, settings, threads)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="contexts",
        cell=f"{profile}/{dataset}",
        record=records.location("contexts", profile, dataset),
        do=do,
        inputs=[prepared],
        code=[MODULE],
        params=settings.model_dump(mode="json"),
        threads=threads,
    )


def find(prepared: Path, final: Path, settings: params.Contexts, threads: int) -> None:
    """Compute the neighbours into `final`, on so many threads. DataError for what is prepared
    otherwise."""
    import torch  # takes a second: help and mistakes are told before

    from stages.winds.contexts import cache
    from stages.winds.pairs import Pairs

    torch.set_num_threads(threads)
    inputs = {path.as_posix(): records.describe(path) for path in records.files_in([prepared])}
    key = records.key(settings.model_dump(mode="json"), code.recorded([MODULE])["digest"], inputs)
    cache.compute(Pairs.open(prepared), settings, files.WORK / "contexts" / key, final)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Find the neighbours of every training target once."
    return runner.command("stages.winds.contexts.find", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
