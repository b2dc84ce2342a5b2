"""`python -m tests.benchmarks.bench_stream [--quick]` (`make bench-stream`): what a message costs a
nowcast that follows a stream, beside the batch answer of the same frames, on one core.

An update takes one more frame in and answers a point; its goal is GOAL_MS at CONTEXT winds of
context. The batch decodes the frames of that context again and answers. Frames are those of the
simulated sky; the models are untrained, which costs the same. Ratios are of rounds in one run. Ends
with 1 when the goal is missed.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from stages import params
from stages.fields.models import build
from stages.winds.nowcast import capture, nowcast
from stages.winds.nowcast.points import Point
from stages.winds.sky import capture as receiver
from stages.winds.streaming.answering import Answering, asked
from stages.winds.streaming.clock import Frame
from tests.benchmarks.clock import Contender, race

GOAL_MS, CONTEXT, QUICK = 50.0, 10_000, 1000
UPDATES = 20  # frames of a round
MODELS = {"kalman": {}, "kriging": {"places": 32}}
PREPARED = {
    "slice_s": 60.0,
    "lead_s": 1800.0,
    "area": {"lat_deg": [44.0, 49.4], "lon_deg": [4.0, 10.5], "alt_ft": [13_000.0, 40_000.0]},
    "scaler": {
        "x_mean": [46.7, 7.2, 30_000.0],
        "x_std": [1.5, 1.8, 7000.0],
        "y_mean": [15.0, -5.0],
        "y_std": [12.0, 10.0],
    },
}


def heard(folder: Path) -> list[Frame]:
    """Frames of the simulated sky's first two hours."""
    plan = params.load().datasets["simulated"].simulate
    files = receiver.capture(plan.model_copy(update={"hours": 2.0}), folder, 0, 2)
    lines = [line for file in files for line in file.read_text().splitlines()]
    pairs = (line.split(",") for line in lines)
    return [(float(ts_s), digits, i) for i, (ts_s, digits) in enumerate(pairs)]


def filled(name: str, frames: list[Frame], winds: int) -> tuple[Answering, int]:
    """A follower that knows so many winds, and how many frames that took."""
    settings = params.load()
    given = {"at": ["46.5,7.2,FL340,+lead"], "points": None, "grid": None, "route": None}
    cell = (build(name, MODELS[name]).eval(), PREPARED, Path(name), "")
    follower = Answering(cell, asked(PREPARED, **given), settings, every_s=86_400.0)
    for count in range(500, len(frames) - 10_000, 500):
        list(follower.take(frames[count - 500 : count], 0.0))
        if follower.winds.sizes()["winds"] >= winds:
            return follower, count
    raise SystemExit(f"two hours of the sky give fewer than {winds:,} winds")


def recomputed(follower: Answering, frames: list[Frame], folder: Path) -> Callable[[], object]:
    """The batch answer of the same frames."""
    file, settings = folder / "frames.csv", params.load()
    file.write_text("".join(f"{ts_s:.3f},{digits}\n" for ts_s, digits, _ in frames))
    end_s = max(one[0] for one in frames)
    point = Point(46.5, 7.2, 34_000.0, end_s + PREPARED["lead_s"])
    return lambda: nowcast.answer(
        follower.net,
        PREPARED,
        [point],
        (*capture.read(file, settings.decode), "batch"),
        settings=settings,
        folder=follower.folder,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_stream")
    parser.add_argument("--quick", action="store_true", help="a tenth of the context; no goal")
    quick = parser.parse_args(argv).quick
    torch.set_num_threads(1)
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = heard(folder)
        for model in MODELS:
            follower, count = filled(model, frames, QUICK if quick else CONTEXT)
            coming = iter(frames[count:])

            def update(follower: Answering = follower, coming=coming) -> None:
                for _ in range(UPDATES):
                    list(follower.take([next(coming)], 0.0))
                    follower.answer()

            times = race(
                {
                    "update": Contender(update, UPDATES),
                    "batch": Contender(recomputed(follower, frames[:count], folder), 1),
                }
            )
            told, ms = times.ratios("update", "batch"), times.median("update")
            kept, batch = follower.winds.sizes()["winds"], times.median("batch")
            goal = f"; goal {GOAL_MS:g} ms {'met' if ms < GOAL_MS else 'missed'}"
            missed += not quick and ms >= GOAL_MS
            print(
                f"{model}: {kept:,} winds of {count:,} frames: an update {ms:.1f} ms, the batch "
                f"{batch:.0f} ms, ratio {told['ratio']:.4f} ({told['low']:.4f} to "
                f"{told['high']:.4f}){'' if quick else goal}",
                flush=True,
            )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
