"""`python -m tests.benchmarks.bench_nearest [--quick]` (`make bench-nearest`): K-nearest attention
with the exact causal search as its engine, over contexts that no dense attention holds.

POINTS points of smoothed random walks are context, as many are asked, each reads its K neighbours;
the goal is GOAL_S for search and answers together, on the cores that torch is given. Then a million
points, of which FEW are asked. Some answers of each are compared with brute force: neighbours to
the bit. The model is untrained, which costs the same. Ends with 1 when the goal is missed or an
answer is wrong.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass

import torch

from stages import seeds
from stages.batches import Batch
from stages.fields.models import build
from stages.neighbours import methods, walks

POINTS, MANY, FEW, PLACES = 100_000, 1_000_000, 20_000, 32
WINDOW = 0.05  # of standardised time, before a query
GOAL_S = 300.0
CHUNK, CHECKED = 4096, 200
EACH = 500  # points of a walk


@dataclass(frozen=True)
class Result:
    """Seconds of building the index, searching and answering; queries with wrong neighbours."""

    points: int
    queries: int
    build_s: float
    search_s: float
    answer_s: float
    wrong: int

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.build_s + self.search_s + self.answer_s


def batch(points: torch.Tensor, winds: torch.Tensor, queries: torch.Tensor, index: torch.Tensor,
          mask: torch.Tensor) -> Batch:  # fmt: skip
    """A set a query, of its neighbours."""
    rows = index.clamp_min(0)
    every = torch.ones(len(queries), 1, dtype=torch.bool)
    return Batch(points[rows], winds[rows], mask, queries[:, None], every)


@torch.no_grad()
def measured(count: int, asked: int, places: int = PLACES) -> Result:
    """One size."""
    table, of = walks.smoothed_random_walk(count // EACH, EACH, seeds.stream(0, "bench", count))
    points, trajectory = torch.from_numpy(table), torch.from_numpy(of)
    winds = torch.randn(len(points), 2, generator=seeds.torch_stream(0, "bench", "winds"))
    step = max(1, len(points) // asked)
    queries = points[::step][:asked].contiguous()
    model = build("nearest_tnp", {"places": places}).eval()
    begun = time.perf_counter()
    index = methods.build("compiled", points, trajectory)
    built = time.perf_counter()
    found = index.query(queries, places, WINDOW)
    searched = time.perf_counter()
    for start in range(0, len(queries), CHUNK):
        some = slice(start, start + CHUNK)
        law = model(batch(points, winds, queries[some], found.index[some], found.mask[some]))
        if not torch.isfinite(law.mean).all():
            raise SystemExit("an answer is not a finite number")
    done = time.perf_counter()
    some = torch.linspace(0, len(queries) - 1, min(CHECKED, len(queries))).long()
    brute = methods.build("linear", points, trajectory).query(queries[some], places, WINDOW)
    wrong = int((brute.index != found.index[some]).any(1).sum())
    return Result(
        len(points), len(queries), built - begun, searched - built, done - searched, wrong
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_nearest")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the points")
    share = 100 if parser.parse_args(argv).quick else 1
    seeds.everything(0)
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(min(2, cores))
    measured(5 * EACH, 5 * EACH)  # compiles
    found = [measured(POINTS // share, POINTS // share), measured(MANY // share, FEW // share)]
    print(f"{'context':>9}  {'asked':>7}  build s  search s  answer s  total s  wrong neighbours")
    for one in found:
        print(
            f"{one.points:9,}  {one.queries:7,}  {one.build_s:7.2f}  {one.search_s:8.2f}  "
            f"{one.answer_s:8.2f}  {one.total_s:7.2f}  {one.wrong}"
        )
    met = found[0].total_s <= GOAL_S
    print(f"goal {GOAL_S:g} s for the first: {'met' if met else 'missed'}")
    return 0 if met and not any(one.wrong for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
