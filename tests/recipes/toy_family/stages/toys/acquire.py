"""Bent coins tossed: data/P/raw/D/tosses.csv, a line a toss (coin, heads), seeded."""

import sys
from collections.abc import Sequence
from pathlib import Path

from stages import runner, seeds
from stages.acquisition import acquire
from stages.params import Dataset
from stages.toys.settings import FAMILY, Coins, Toys

MODULE = "stages.toys.acquire"
TOSSES = "tosses.csv"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = asked.parameters.family(asked["profile"], FAMILY, Toys).datasets
    return acquire.work(asked, known, MODULE, own)


def own(dataset: Dataset) -> acquire.Own | None:
    """How a set of ours is made; None for what is fetched."""
    if dataset.made is None:
        return None
    coins = Coins.model_validate(dataset.made.model_dump())
    return acquire.Own(lambda folder: toss(coins, folder), 8.0 * len(coins.chances) * coins.tosses)


def toss(coins: Coins, folder: Path) -> None:
    """Toss every coin in turn; heads is 1."""
    lines = ["coin,heads"]
    for coin, chance in enumerate(coins.chances):
        drawn = seeds.stream(coins.seed, "toys", coin).random(coins.tosses) < chance
        lines += [f"{coin},{int(heads)}" for heads in drawn]
    (folder / TOSSES).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Acquire tosses of bent coins."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
