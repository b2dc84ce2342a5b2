"""`python -m stages.winds.streaming.filmed EXPERIMENT PROFILE DATASET CELL`: a trained cell follows
the last hour of a data set's raw frames as `tradewind nowcast --follow` does; its answers become
one small moving picture, reports/EXPERIMENT/PROFILE/film/DATASET.gif; and a record.

A level of the whole area is asked each EVERY_S of the stream's time, one lead after it. Dots are
the winds of the last SHOWN_S that were known. Nothing of the clock is drawn, so that the bytes
follow from the frames, the cell and this code.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from stages import files, records
from stages.errors import DataError
from stages.params import Inference
from stages.runner import Asked, Work, command, known

MODULE = "stages.winds.streaming.filmed"
LEVEL, EVERY_S, SHOWN_S = "FL340,+lead,0.4", 360.0, 600.0
TOP_KN = 100.0  # of the shade, the same in every frame
WIDTH, COLOURS = 400, 32
MOST_BYTES = 300_000
BLOCK = 1 << 16  # bytes of frames that come at once


def answered(frames: Path, cell: Path, settings: Inference) -> Iterator[tuple[list, pl.DataFrame]]:
    """The rows of each answer, with the winds of the last SHOWN_S before it."""
    from stages.winds.nowcast import nowcast
    from stages.winds.streaming.answering import Answering, asked

    net, meta = nowcast.load(cell)
    points = asked(meta["prepared"], at=None, points=None, grid=LEVEL, route=None)
    following = Answering((net, meta["prepared"], cell, ""), points, settings, every_s=EVERY_S)
    whole = frames.read_bytes()
    for start in range(0, len(whole), BLOCK):
        for line in following.feed(whole[start : start + BLOCK], 0.0):
            if following.rows:
                now_s = line["time_s"]
                winds = following.winds.known(now_s)
                yield following.rows, winds.filter(pl.col("ts_s") >= now_s - SHOWN_S)


def make(frames: Path, cell: Path, settings: Inference, final: Path) -> None:
    """Write the picture `final`. DataError where there is no answer to draw, and for one that is
    larger than a page should load."""
    from stages.winds.nowcast import picture
    from stages.winds.streaming.film import Film

    film = Film(WIDTH, COLOURS)
    with TemporaryDirectory() as scratch:
        drawn = Path(scratch, "answer.png")
        for rows, winds in answered(frames, cell, settings):
            picture.draw(rows, drawn, known=winds, top_kn=TOP_KN)
            film.add(drawn)
    if not film.frames:
        raise DataError("the stream gives no answer to draw", where=str(frames))
    with files.atomic_folder(final.parent) as folder:
        film.write(folder / final.name)
        size = (folder / final.name).stat().st_size
        if size > MOST_BYTES:
            raise DataError(
                "a moving picture is larger than a page should load",
                where=str(final),
                expected=f"at most {MOST_BYTES:,} bytes",
                found=f"{size:,}",
                remedy="fewer frames or colours",
            )


def plan(asked: Asked) -> Work:
    """The work of the stage. InputError for a cell that the experiment does not declare."""
    dataset, cell = asked["dataset"], asked["cell"]
    known("cell", cell, asked.trained.of(dataset), str(asked.home))
    run, final = asked.home / "runs" / dataset / cell, asked.home / "film" / f"{dataset}.gif"
    frames, settings = asked.data("raw"), asked.parameters

    def do() -> dict[str, Path]:
        hours = sorted(frames.glob("frames_*.csv"))
        if not hours:
            raise DataError(
                "there are no frames to follow", where=str(frames), expected="frames_HH.csv"
            )
        make(hours[-1], run, settings, final)
        return {path.as_posix(): path for path in records.files_in([final.parent])}

    model = asked.trained.of(dataset)[cell].model
    return Work(
        stage="film",
        cell=f"{asked['profile']}/{dataset}/{cell}",
        record=asked.home / "records" / f"{dataset}.film.json",
        do=do,
        inputs=[frames, run, asked.home / "evaluated" / dataset],
        code=[MODULE, f"stages.fields.models.{model}"],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    about = "Draw how a trained cell follows a stream."
    return command(MODULE, about, ("experiment", "profile", "dataset", "cell"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
