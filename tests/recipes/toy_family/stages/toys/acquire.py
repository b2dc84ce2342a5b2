"""Bent coins tossed: data/P/raw/D/tosses.csv, a line a toss (coin, heads), seeded."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stages import runner, seeds
from stages.acquisition import acquire
from stages.toys.settings import Coins, coins_of, toys_of

MODULE = "stages.toys.acquire"
TOSSES = "tosses.csv"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = toys_of(asked.parameters, asked["profile"]).datasets
    coins = coins_of(asked.parameters, runner.known("set of toys", asked["dataset"], known))
    own = acquire.Own(partial(toss, coins), 8.0 * len(coins.chances) * coins.tosses)
    return acquire.work(asked, known, MODULE, lambda dataset: own)


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
