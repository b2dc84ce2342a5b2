"""Why the bound printed in the thesis (Algorithm 1) is none, shown on the counterexample and
counted on a point set.

A bound must not exceed the distance of any point of its run: a search that believes it leaves the
run unread. Counted here: the pairs of a query and a run in which a bound exceeds the squared
distance of the run's nearest point, and the queries to which a search that reads runs in the order
of the printed bound, and stops where that bound says so, answers otherwise than brute force.
Shapes: N points, S runs, M queries, k neighbours. Distances squared, in the scaled unit of the
axes.
"""

from typing import Any

import numpy as np
import torch

from stages.neighbours import bounds
from stages.neighbours.contract import square_distance
from stages.neighbours.experiment.measure import SCALES
from stages.neighbours.experiment.sets import PointSet
from stages.neighbours.segments import SPACE, Segments, cut

RUN = 100  # points a run: TNN's own default
ROUNDING = 1e-12  # relative: a bound in float64 that exceeds a distance by less is its rounding


def runs_of(points: torch.Tensor, trajectory: torch.Tensor) -> tuple[Segments, torch.Tensor]:
    """The runs of points (N, 4), and to which of them each point belongs (N,)."""
    order = torch.argsort(points[:, SPACE], stable=True)
    layout, segments = cut(points, trajectory, order, RUN)
    place = torch.empty(len(points), dtype=torch.int64)
    owner = torch.repeat_interleave(torch.arange(len(segments)), segments.size)
    starts = torch.repeat_interleave(segments.offset, segments.size)
    first = torch.repeat_interleave(segments.size.cumsum(0) - segments.size, segments.size)
    place[order[layout[starts + torch.arange(len(owner)) - first]]] = owner
    return segments, place


def counterexample() -> dict[Any, Any]:
    """The constant of stages/neighbours/bounds.py in numbers: where the query falls on the line,
    what is true, what each bound says."""
    example = bounds.COUNTEREXAMPLE
    points, query, scale, rival = (
        torch.tensor(part, dtype=torch.float64)
        for part in (example.run, [example.query], [example.scale], [example.rival])
    )
    segments, _ = runs_of(points, torch.zeros(len(points), dtype=torch.int64))
    distance = square_distance(query, points, scale)
    asked = (query, scale, query[:, SPACE], segments)
    line = points[-1, :SPACE] - points[0, :SPACE]
    foot = (
        points[0, :SPACE]
        + ((query[0, :SPACE] - points[0, :SPACE]) @ line / line.square().sum()).clamp(0, 1) * line
    )
    return {
        "run": points.tolist(),
        "query": query[0].tolist(),
        "rival": rival[0].tolist(),
        "scale": scale[0].tolist(),
        "projection": foot.tolist(),
        "distance_to_line": float((query[0, :SPACE] - foot).norm()),
        "deviation": float(segments.furthest[0]),
        "nearest": int(distance.argmin()),
        "true": float(distance.min()),
        "rival_true": float(square_distance(query, rival, scale)),
        "printed": float(bounds.printed_bound(query, scale, segments)),
        "segment": float(bounds.segment_bound(*asked)),
        "box": float(bounds.box_bound(*asked)),
    }


def lost(bound: np.ndarray, distance: np.ndarray, run: np.ndarray, k: int) -> bool:
    """Whether a search that trusts `bound` (S,) of the runs errs on one query: squared `distance`
    (n,) to its points, `run` (n,) theirs.

    Runs are read in the order of their bounds until k neighbours are at hand and none of them is
    further than the next run's bound.
    """
    k = min(k, len(distance))
    order = np.argsort(bound, kind="stable")
    rank = np.empty(len(bound), np.int64)
    rank[order] = np.arange(len(bound))
    read = distance[np.argsort(rank[run], kind="stable")]
    ends = np.cumsum(np.bincount(rank[run], minlength=len(bound)))
    found, start = np.empty(0), 0
    for place, end in enumerate(ends, 1):
        found, start = np.concatenate([found, read[start:end]]), end
        found = np.partition(found, k - 1)[:k] if len(found) > k else found
        if len(found) == k and (place == len(ends) or bound[order[place]] > found.max()):
            break
    return bool(found.max(initial=0) > np.partition(distance, k - 1)[k - 1])


def counted(points: PointSet, k: int) -> dict[Any, Any]:
    """Of each scale: pairs of a query and a run that it sees, those in which each bound is none,
    queries, those answered wrongly.

    Distances and bounds in float64; a query sees the points that are a window older, as in every
    search here.
    """
    place = points.points.double()
    segments, run = runs_of(place, points.trajectory)
    queries, owner = place[points.queries], run.numpy()
    latest = queries[:, SPACE] - points.window
    result = {}
    for arm, weights in SCALES.items():
        scale = torch.tensor(weights, dtype=torch.float64).expand(len(queries), -1)
        said = {
            "printed": bounds.printed_bound(queries, scale, segments),
            "segment": bounds.segment_bound(queries, scale, latest, segments),
            "box": bounds.box_bound(queries, scale, latest, segments),
        }
        pairs, asked, wrong, above = 0, 0, 0, dict.fromkeys(said, 0)
        for row, query in enumerate(queries):
            seen = place[:, SPACE] <= latest[row]
            distance = square_distance(query, place[seen], scale[row])
            nearest = torch.full((len(segments),), torch.inf, dtype=torch.float64).scatter_reduce_(
                0, run[seen], distance, "amin"
            )
            known = (
                nearest < torch.inf
            )  # a run of which the query sees nothing is none of its pairs
            if not known.any():
                continue
            pairs, asked = pairs + int(known.sum()), asked + 1
            for name, values in said.items():
                above[name] += int((values[row] > nearest * (1 + ROUNDING))[known].sum())
            trusted = said["printed"][row].where(known, torch.inf).numpy()
            wrong += lost(trusted, distance.numpy(), owner[seen.numpy()], k)
        result[arm] = {"pairs": pairs, "queries": asked, "above": above, "wrong": wrong}
    return {"k": k, "run": RUN, "runs": len(segments), "scales": result}


def explained(points: PointSet, k: int) -> dict[Any, Any]:
    """The content of bound.json: the counterexample, and the counts for `k` neighbours on the
    set."""
    return {"counterexample": counterexample(), "counted": counted(points, k)}
