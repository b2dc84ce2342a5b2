"""The tables of the experiments on sets of points (thesis 3.2, 3.4, C.2, C.5, C.6, C.8; figures
3.4-3.6), a printed number beside each of ours.

A cell is one trained model, an arm the same model over its seeds; `arms` are those of
tabulate.over_seeds, `cells` what evaluation wrote, `printed` what published.sets found. † marks a
printed number that is misprinted, ‡ one about which the document leaves something open; the notes
stand below the table. Errors are of test sets unless a title says validation; the documents print
validation, as a mean over batches.
"""

from typing import Any

from stages.claims.levels import Side, judged, level
from stages.fields.claims import SOLVED, overlapping
from stages.fields.comparisons import Evaluated
from stages.fields.printed import Companions, document, levels, notes, theirs
from stages.fields.probe_means import probed
from stages.tables.published import Printed
from stages.tables.table import NONE, Table, arm_of, label, number

MSE, MEAN = "mse", "mean"


def ordered(arms: dict[str, Any], dataset: str) -> list[str]:
    """The data set's arms, worst MSE first, so that the eye ends on the best."""
    mine = [
        name for name in arms if name.startswith(dataset + "/") and MSE in arms[name]["metrics"]
    ]
    return sorted(mine, key=lambda name: -arms[name]["metrics"][MSE]["mean"])


def parameters(cells: dict[str, Any], name: str) -> str:
    """The count of an arm's parameters, '–' for what has none."""
    count = next(
        (content.get("parameters") for cell, content in cells.items() if arm_of(cell) == name), None
    )
    return f"{count:,}" if count else NONE


def of_mean(arms: dict[str, Any], name: str, metric: str = MSE) -> str:
    """A MSE in percent of what the mean of the training targets leaves on the same sets."""
    mean = arms.get(f"{name.split('/', maxsplit=1)[0]}/{MEAN}", {}).get("metrics", {}).get(MSE)
    mine = arms[name]["metrics"].get(metric)
    return f"{100 * mine['mean'] / mean['mean']:.1f}" if mean and mine else NONE


def beside(printed: Companions, name: str) -> dict[str, Printed]:
    """The printed numbers that belong beside an arm: metric -> Printed."""
    dataset, arm = name.split("/")
    return printed.get((document(dataset), arm), {})


def results(
    arms: dict[str, Any], cells: dict[str, Any], dataset: str, printed: Companions
) -> tuple[Table, str]:
    """A row an arm with its companions, and the notes on the printed numbers."""
    names, rows, used = ordered(arms, dataset), [], []
    unit = arms[names[0]]["metrics"][MSE]["unit"]
    square, plain = (
        ("", "")
        if unit == "1"
        else (f" [{unit}]", f" [{arms[names[0]]['metrics'].get('rmse', {}).get('unit', '')}]")
    )
    for name in names:
        metrics, other = arms[name]["metrics"], beside(printed, name)

        def score(key: str, metrics: dict[str, Any] = metrics) -> str:
            return number(metrics.get(key))

        used += [other[key] for key in (MSE, "rmse") if key in other]
        rows.append(
            (
                label(name.split("/")[1]),
                str(arms[name]["seeds"]),
                parameters(cells, name),
                number(metrics[MSE], interval=True),
                of_mean(arms, name),
                score("mse_val"),
                score("mse_batch_mean_val"),
                theirs(other.get(MSE)),
                score("rmse"),
                theirs(other.get("rmse")),
                score("r2"),
                score("mse_permuted"),
                of_mean(arms, name, "mse_permuted"),
            )
        )
    titles = (
        "model",
        "seeds",
        "parameters",
        f"MSE{square}",
        "of the mean's MSE [%]",
        f"validation MSE{square}",
        f"the same, mean of batches{square}",
        "printed MSE, validation",
        f"RMSE{plain}",
        "printed RMSE, validation",
        "R²",
        f"context shuffled, MSE{square}",
        "of the mean's [%]",
    )
    return Table(
        f"results on {dataset}", titles, tuple(rows), frozenset({0, 7, 9}), len(names) - 1
    ), levels(used, dataset)


def sharing(cells: dict[str, Any], dataset: str, printed: Companions) -> tuple[Table, str] | None:
    """Table 3.4: the MSE with one encoder of positions over that with two, by model and size;
    None where no model has both."""
    mine = {
        name.partition("/")[2]: content
        for name, content in cells.items()
        if name.startswith(dataset + "/")
    }
    measured = Evaluated(dataset, mine)
    rows, used = [], []
    for model in sorted({cell.split("-")[0] for cell in mine}):
        for pair in measured.encodings(model):
            one, two = (level(measured, Side(arm, ("metrics", MSE))) for arm in pair)
            if one is None or two is None:
                continue
            apart = one.value - two.value
            told = judged("", "", apart, 1.0, True, [one, two]).numbers
            ends = (
                f" [{100 * told['interval'][0]:.1f}, {100 * told['interval'][1]:.1f}]"
                if "interval" in told
                else ""
            )
            other = printed.get((document(dataset), model), {}).get("error_ratio")
            used += [other] if other else []
            rows.append(
                (
                    f"{pair[0]} / {pair[1].partition('-')[2]}",
                    f"{one.seeds}, {two.seeds}",
                    f"{100 * told['value']:.1f}{ends}",
                    theirs(other),
                )
            )
    titles = (
        "model",
        "seeds",
        "MSE shared over not shared [%]",
        "printed (mean of 5k, 20k, 100k) [%]",
    )
    return (
        (Table(f"sharing on {dataset}", titles, tuple(rows), frozenset({0, 3})), notes(used))
        if rows
        else None
    )


def learned(arms: dict[str, Any], dataset: str, printed: Companions) -> tuple[Table, str] | None:
    """Table C.3: the MSE on sets that a model was trained on, beside that on test sets; None
    where it was not measured."""
    names = [name for name in ordered(arms, dataset) if f"{MSE}_train" in arms[name]["metrics"]]
    rows = []
    used = []
    for name in names:
        metrics, other = arms[name]["metrics"], beside(printed, name).get(f"{MSE}_train")
        used += [other] if other else []
        rows.append(
            (
                label(name.split("/")[1]),
                number(metrics[MSE]),
                number(metrics[f"{MSE}_train"], interval=True),
                f"{metrics[MSE]['mean'] / metrics[f'{MSE}_train']['mean']:.2f}",
                theirs(other),
            )
        )
    titles = (
        "model",
        "MSE, test sets",
        "MSE, training sets",
        "test over training",
        "printed MSE, training",
    )
    return (
        (
            Table(f"training errors on {dataset}", titles, tuple(rows), frozenset({0, 4})),
            levels(used, dataset),
        )
        if rows
        else None
    )


def frequency(dataset: str) -> tuple[float, str]:
    """Where a set of figure 3.4 stands: by the frequency in its name ('sines_05' -> 0.5,
    'sines' -> 1), `copies` (random) last."""
    if dataset.startswith("copies"):
        return (float("inf"), dataset)
    text = dataset.removeprefix("sines").strip("_").replace("_", ".")
    text = f"0.{text[1:]}" if len(text) > 1 and text[0] == "0" and "." not in text else text
    return (float(text) if text.replace(".", "", 1).isdigit() else 1.0, dataset)


def copying_sets(arms: dict[str, Any]) -> list[str]:
    """The data sets in which targets are the context's own points, smoothest first."""
    return sorted(
        {name.split("/")[0] for name in arms if name.startswith(("sines", "copies"))}, key=frequency
    )


def copying(arms: dict[str, Any]) -> Table | None:
    """Figure 3.4: who can hand on what it was given, by the frequency of the function; ✓ below
    the document's bar."""
    sets = copying_sets(arms)
    models = sorted({name.split("/")[1] for name in arms if name.split("/")[0] in sets})

    def error_text(found: dict[str, Any] | None) -> str:
        return (
            NONE
            if found is None
            else number(found, interval=True) + (" ✓" if found["mean"] < SOLVED else "")
        )

    rows = tuple(
        (
            label(model),
            *(
                error_text(arms.get(f"{name}/{model}", {}).get("metrics", {}).get(MSE))
                for name in sets
            ),
        )
        for model in models
    )
    return Table("copying", ("model", *(f"{name}, MSE" for name in sets)), rows) if rows else None


def errors_undone(cells: dict[str, Any], dataset: str) -> Table | None:
    """Figures 3.5 and 3.6: how many latents a planted error moves, and how many updates undo it;
    None where neither was probed."""
    latents, steps = probed(cells, dataset, "latents"), probed(cells, dataset, "correction")
    rows = []
    for arm in sorted(latents.keys() | steps.keys()):
        touched, undone = latents.get(arm, {}), steps.get(arm, {}).get("steps")
        told = (("more than " if undone["capped"] else "") + number(undone)) if undone else NONE
        count = f"{touched['count']['mean']:.0f}" if "count" in touched else NONE
        rows.append(
            (
                label(arm),
                str((touched.get("effective") or undone or {"seeds": 1})["seeds"]),
                count,
                number(touched.get("effective")),
                number(touched.get("largest_share")),
                told,
            )
        )
    titles = (
        "model",
        "seeds",
        "latents",
        "latents touched (effective)",
        "largest share of the gradient",
        "updates to undo the error",
    )
    return Table(f"planted errors on {dataset}", titles, tuple(rows)) if rows else None


def overlap(cells: dict[str, Any], dataset: str, printed: Companions) -> tuple[Table, str] | None:
    """Table C.8: the error by the share of the context that comes from the targets' region, and
    the printed row."""
    found = probed(cells, dataset, "overlap")
    shares = sorted({share for rows in found.values() for share in rows}, key=float)
    if not shares:
        return None
    rows = [
        (label(arm), *(number(values.get(share)) for share in shares))
        for arm, values in found.items()
    ]
    other = {
        share: printed.get((document(dataset), f"overlap-{int(share):03}"), {}).get("error")
        for share in shares
    }
    if any(other.values()):
        rows.append(("printed, of an error not named", *(theirs(other[share]) for share in shares)))
    return (
        Table(
            f"overlap on {dataset}",
            ("model", *(f"{int(share)} %, MSE" for share in shares)),
            tuple(rows),
        ),
        notes([one for one in other.values() if one]),
    )


def tightness(
    cells: dict[str, Any], dataset: str, printed: dict[str, dict[str, Printed]]
) -> tuple[Table, str] | None:
    """Table C.7: the error by the target's distance from a narrow context; the printed rows,
    which are of winds, below."""
    found = probed(cells, dataset, "tightness")
    bins = sorted(
        {name for rows in found.values() for name in rows},
        key=lambda name: float(name.split("-")[0]),
    )
    if not bins:
        return None
    rows = [
        (label(arm), *(number(values.get(name)) for name in bins)) for arm, values in found.items()
    ]
    rows += [
        (f"printed of winds [kn], {model}", *(theirs(told.get(name)) for name in bins))
        for model, told in printed.items()
    ]
    titles = ("model", *(f"{name.replace('-inf', ' and more')}, MSE" for name in bins))
    return Table(f"tightness on {dataset}", titles, tuple(rows)), notes(
        [one for told in printed.values() for one in told.values()]
    )


def inputs(cells: dict[str, Any], dataset: str) -> Table | None:
    """Figure C.5 in numbers: how many context values move one answer, and the share of the
    nearest; None where it was not probed."""
    rows = [
        (
            label(arm),
            str(told["effective"]["seeds"]),
            number(told["effective"]),
            number(told.get("nearest_share")),
        )
        for arm, told in probed(cells, dataset, "inputs").items()
        if "effective" in told
    ]
    titles = (
        "model",
        "seeds",
        "context values that move an answer (effective)",
        "share of the nearest one",
    )
    return Table(f"inputs on {dataset}", titles, tuple(rows)) if rows else None


def regions(arms: dict[str, Any], printed: Companions) -> tuple[Table, str] | None:
    """Tables C.8 and C.9: models trained where a share of the context lies in the targets'
    quarter; None without such data sets."""
    rows, used = [], []
    for name in sorted(
        arms, key=lambda name: (name.split("/")[1], *overlapping(name.split("/")[0]))
    ):
        dataset, arm = name.split("/")
        problem, share = overlapping(dataset)
        if not problem or arm in (MEAN, "nearest"):
            continue
        other = printed.get((document(dataset), f"overlap-{share:03}"), {})
        used += [other[key] for key in ("error", "error_train") if key in other]
        metrics = arms[name]["metrics"]
        rows.append(
            (
                label(arm),
                problem,
                f"{share} %",
                number(metrics.get("rmse"), interval=True),
                of_mean(arms, name),
                theirs(other.get("error")),
                number(metrics.get("rmse_train")),
                theirs(other.get("error_train")),
            )
        )
    titles = (
        "model",
        "problem",
        "context from the targets' quarter",
        "RMSE, test",
        "MSE of the mean's [%]",
        "printed, test",
        "RMSE, training",
        "printed, training",
    )
    return (
        (Table("regions", titles, tuple(rows), frozenset({0, 1, 5, 7})), notes(used))
        if rows
        else None
    )
