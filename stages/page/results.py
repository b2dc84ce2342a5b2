"""The results as one list: of every arm its main number and the three companions that it must be
read beside.

`published` is what a document prints for the arm, `bound` the best that there can be (a noise
floor, an optimum, an entropy, a count), `trivial` what no learning reaches. Where one does not
exist the text says so: no companion is ever empty. An arm is a model over its seeds; `metric` is
the last part of its address for `tradewind audit`, `value` its mean ± spread over seeds [90 %
interval] in the unit that `measure` names. Of the neighbour search, whose arms are all told in its
own tables, the list holds those at the most neighbours asked for.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stages.fields import results as set_results
from stages.fields import tables as set_tables
from stages.neighbours.experiment import results as searches
from stages.neighbours.experiment import tables as search_tables
from stages.sequences.reporting import results as order_results
from stages.sequences.reporting import tables as order_tables
from stages.tables.published import companions, sets, shown
from stages.winds import tables

NOT_PUBLISHED = "not published"
NO_BOUND = "none is known"
DOCUMENTS = {  # as tables and claims name them: as people do
    "thesis": "thesis",
    "tetnp": "TE neural processes",
    "ongrid": "on/off grid",
    "gating": "dynamical systems",
    "slides": "slides",
}
FAMILIES = {
    "wind_nowcast": "wind",
    "wind_baselines": "wind",
    **dict.fromkeys(set_results.EXPERIMENTS, "fields"),
    **dict.fromkeys(order_results.EXPERIMENTS, "sequences"),
    searches.EXPERIMENT: "neighbours",
}


@dataclass(frozen=True)
class Result:
    """One arm's main number as text, with its companions and where it stands."""

    experiment: str
    profile: str
    dataset: str
    arm: str
    name: str
    seeds: str
    measure: str
    value: str
    published: str
    bound: str
    trivial: str
    metric: str
    cell: str = ""  # where only a cell holds the number: the arm's first

    @property
    def address(self) -> str:
        """What `tradewind audit` is given."""
        return "/".join(
            (self.experiment, self.profile, self.dataset, self.cell or self.arm, self.metric)
        )


def family(experiment: str) -> str:
    """wind, fields, neighbours or sequences; an experiment that none of these names is a family
    of its own."""
    return FAMILIES.get(experiment, experiment)


def documents(experiment: str, sources: list[str]) -> list[str]:
    """The documents (keys of DOCUMENTS) that an experiment is compared with or whose claims it
    checks, e.g. ['thesis']."""
    file = Path("reports", experiment, "companions.csv")
    told = sources + (
        pl.read_csv(file, infer_schema_length=0)["table"].to_list() if file.exists() else []
    )
    return [key for key in DOCUMENTS if any(text.split(" ")[0].strip(",") == key for text in told)]


def winds(experiment: str, profile: str, content: dict[str, Any]) -> list[Result]:
    """RMSE per component, kn: beside the printed one, the sensors' noise or the optimum, and the
    hour's average."""
    arms, printed, found = content["arms"], companions(experiment), []
    for dataset in tables.datasets_of(arms):
        floor, best = tables.floor_of(arms, dataset), tables.error_of(arms, dataset, tables.OPTIMUM)
        trivial = tables.error_of(arms, dataset, tables.BASELINE)
        bound = (
            f"optimum {best:.2f}" if best else f"sensor noise {floor:.2f}" if floor else NO_BOUND
        )
        for name in tables.ordered(arms, dataset):
            arm, one = name.split("/")[1], arms[name]
            theirs = shown(printed[arm]) if printed.get(arm) else NOT_PUBLISHED
            beside = (
                (
                    f"{tables.BASELINE} {trivial:.2f} "
                    f"({tables.against(one['metrics'][tables.RMSE]['mean'], trivial)})"
                )
                if trivial
                else f"{tables.BASELINE} was not run"
            )
            found.append(
                Result(
                    experiment,
                    profile,
                    dataset,
                    arm,
                    tables.label(arm),
                    str(one["seeds"]),
                    "RMSE per component [kn]",
                    tables.number(one["metrics"][tables.RMSE], True),
                    theirs,
                    bound,
                    beside,
                    tables.RMSE,
                )
            )
    return found


def fields(experiment: str, profile: str, content: dict[str, Any]) -> list[Result]:
    """MSE over targets and components: beside the printed one and the mean of the training
    targets."""
    arms, printed, found = content["arms"], sets(experiment), []
    for dataset in tables.datasets_of(arms):
        mean = arms.get(f"{dataset}/{set_tables.MEAN}", {}).get("metrics", {}).get(set_tables.MSE)
        bound = (
            "0: targets are points of the context"
            if dataset.startswith(("copies", "sines"))
            else NO_BOUND
        )
        for name in set_tables.ordered(arms, dataset):
            arm, one = name.split("/")[1], arms[name]
            other, mse = (
                set_tables.beside(printed, name).get(set_tables.MSE),
                one["metrics"][set_tables.MSE],
            )
            unit = "" if mse["unit"] == "1" else f" [{mse['unit']}]"
            beside = (
                f"mean {set_tables.number(mean)} ({set_tables.of_mean(arms, name)} % of it)"
                if mean
                else "the mean was not run"
            )
            theirs = set_tables.theirs(other) if other else regional(printed, dataset, arm)
            found.append(
                Result(
                    experiment,
                    profile,
                    dataset,
                    arm,
                    tables.label(arm),
                    str(one["seeds"]),
                    f"MSE{unit}",
                    set_tables.number(mse, True),
                    theirs,
                    bound,
                    beside,
                    set_tables.MSE,
                )
            )
    return found


def regional(printed: set_tables.Companions, dataset: str, arm: str) -> str:
    """What thesis table C.8 prints for a model of an overlap, an error that it does not name; of
    all else nothing is published."""
    problem, share = set_tables.overlapping(dataset)
    row = (
        printed.get((set_tables.document(problem), f"overlap-{share:03}"), {})
        if problem and arm.startswith("msa")
        else {}
    )
    return (
        f"{set_tables.theirs(row['error'])}, an error not named"
        if "error" in row
        else NOT_PUBLISHED
    )


def orders(experiment: str, profile: str, content: dict[str, Any]) -> list[Result]:
    """What a sequence model's samples are worth, or its likelihood where it has none: beside the
    printed number, the law and guessing."""
    cells, printed, found = content["cells"], order_tables.companions(experiment), []
    for dataset, about in content["about"].items():
        for arm in order_tables.ranked(cells, dataset):
            path, measure, scale, kind = _told_by(cells, about, dataset, arm)
            if path is None:
                continue
            value = order_tables.at(cells, dataset, arm, *path)
            beside = [
                (name, order_tables.at(cells, dataset, name, *path_of))
                for name in ("constant_rate", "marginals", "uniform")
                if (path_of := _told_by(cells, about, dataset, name, kind)[0])
            ]
            trivial = next(
                (f"{name} {order_tables.number(one, scale)}" for name, one in beside if one),
                "no guess was measured",
            )
            metric = (
                {"maze": "accuracy", "climb": "mse"}.get(about["kind"])
                if kind == "samples"
                else None
            )
            document = order_tables.DOCUMENTS.get(about["kind"], "")
            other = (
                printed.get((document, order_tables.order_of(arm)), {}).get(metric)
                if metric
                else None
            )
            entropy = (
                f"entropy of the law {about['entropy']:.4g}"
                if "entropy" in about and kind != "samples"
                else NO_BOUND
            )
            bound = (
                "100, every sample valid"
                if kind == "samples" and measure.endswith("[%]")
                else entropy
            )
            found.append(
                Result(
                    experiment,
                    profile,
                    dataset,
                    arm,
                    order_tables.called(arm),
                    str(value["seeds"]),
                    measure,
                    order_tables.number(value, scale, True),
                    order_tables.theirs(other) if other else NOT_PUBLISHED,
                    bound,
                    trivial,
                    "/".join(path if path[0] == "samplers" else path[1:]),
                    _first(cells, dataset, arm) if kind == "samples" else "",
                )
            )
    return found


def _first(cells: dict[str, Any], dataset: str, arm: str) -> str:
    """The name of an arm's first cell."""
    return min(
        name.partition("/")[2] for name in cells if tables.arm_of(name) == f"{dataset}/{arm}"
    )


def _told_by(
    cells: dict[str, Any], about: dict[str, Any], dataset: str, arm: str, wanted: str = ""
) -> tuple[tuple[str, ...] | None, str, float, str]:
    """(path in a cell, title, factor, kind) of an arm's main number: of its samples, else nats a
    token or a bound on them."""
    if not order_tables.members(cells, dataset, arm):
        return None, "", 1, ""
    standing, named = (
        order_tables.standing(cells, about, dataset, arm),
        order_tables.SHOWN[about["kind"]],
    )
    choices = (
        [((*standing, named[0][0]), named[0][1], named[0][2], "samples")]
        if standing and named
        else []
    )
    choices += [
        (("metrics", "nats"), "nats a token, own order", 1, "nats"),
        (("metrics", "nats_bound"), "nats a token, at most", 1, "nats"),
    ]
    for path, title, scale, kind in choices:
        if wanted in ("", kind) and order_tables.at(cells, dataset, arm, *path):
            return path, title, scale, kind
    return None, "", 1, ""


def neighbours(experiment: str, profile: str, content: dict[str, Any]) -> list[Result]:
    """Comparisons a query: beside the printed count, the fewest that can be (the answers
    themselves) and linear search."""
    found, rows = searches.read(Path("reports", experiment, profile)), []
    for dataset in found.sets():
        k = found.most(dataset)
        linear = found.metric(dataset, f"linear-aniso-k{k}", "comparisons") or found.metric(
            dataset, f"linear-iso-k{k}", "comparisons"
        )
        for method, words in search_tables.METHODS.items():
            arm = f"{method}-aniso-k{k}"
            one = found.metric(dataset, arm, "comparisons")
            if not one:
                continue
            theirs = found.theirs(
                dataset, "kdtree-masked" if method == "kdtree" else method, "comparisons"
            )
            beside = (
                (
                    f"linear search {linear['mean']:,.0f} "
                    f"({100 * one['mean'] / linear['mean']:.3g} % of it)"
                )
                if linear
                else "linear search was not run"
            )
            rows.append(
                Result(
                    experiment,
                    profile,
                    dataset,
                    arm,
                    words,
                    "no training",
                    f"comparisons a query, k = {k}",
                    search_tables.counted(one),
                    NOT_PUBLISHED if theirs == search_tables.NONE else theirs,
                    f"{k:,}, the answers alone",
                    beside,
                    "comparisons",
                )
            )
    return rows


def results(experiment: str, profile: str, content: dict[str, Any]) -> list[Result]:
    """Every row of one experiment in one profile, in the order of its tables; `content` is its
    metrics.json."""
    kind = {
        **dict.fromkeys(set_results.EXPERIMENTS, fields),
        **dict.fromkeys(order_results.EXPERIMENTS, orders),
        searches.EXPERIMENT: neighbours,
    }.get(experiment, winds)
    return kind(experiment, profile, content)


def rerun(experiment: str, profile: str) -> str:
    """The command that makes an experiment's table again in a profile, with all that it rests on
    and that has changed."""
    return f"dvc repro reports/{experiment}/dvc.yaml:tabulate@{profile}"
