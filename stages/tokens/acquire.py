"""A set into data/P/raw/D: tables of sentences verbatim as pinned; or made here, seeded: pairs.tsv
(sentence1, sentence2, label; as GLUE has them), or rows.npz (shapes: inputs, answers, kinds;
pictures: sequences)."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stages import arrays, files, runner, seeds
from stages.acquisition import acquire
from stages.tokens.layout import PAIRS, ROWS
from stages.tokens.settings import FAMILY, Made, made_of, tokens_of
from stages.tokens.tasks import glue, pairs, pictures, shapes

MODULE = "stages.tokens.acquire"
BYTES = {"pairs": 120, "shapes": 900, "pictures": 8}  # a row, at most; of pictures a token


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = tokens_of(asked.parameters, asked["profile"]).datasets
    told = made_of(asked.parameters, runner.known("set of tokens", asked["dataset"], known))
    if told is None:
        return acquire.work(asked, known, MODULE, lambda _: None)
    size = BYTES[told.task] * told.rows * (told.form().length if told.task == "pictures" else 1)
    own = acquire.Own(partial(make, told), float(size))
    return acquire.work(asked, known, MODULE, lambda _: own)


def make(told: Made, folder: Path) -> None:
    """Fill the folder."""
    rng = seeds.stream(told.seed, FAMILY, told.task)
    if told.task == "pairs":
        assert told.nouns is not None and told.fillers is not None
        rows = pairs.draw(told.rows, told.nouns, told.fillers, rng)
        lines = ["\t".join(glue.FORMATS["pairs"].columns), *("\t".join(row) for row in rows)]
        with files.atomic_file(folder / PAIRS, "w") as text:
            text.write("\n".join(lines) + "\n")
        return
    if told.task == "shapes":
        inputs, answers, kinds = shapes.draw(told.rows, rng)
        drawn = {"inputs": inputs, "answers": answers, "kinds": kinds}
    else:
        drawn = {"sequences": pictures.draw(told.rows, told.form(), rng)}
    arrays.save(folder / ROWS, drawn)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Make a set of tokens (sentence pairs, shapes, pictures), or fetch tables of sentences."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
