"""The family's tables: what table.md and the page show alike."""

import json
from typing import Any

import numpy as np

from stages.tables.table import NONE, Table, cells_of, digits, label, number
from stages.tokens.printed import Printed, beside

Content = dict[str, Any]
MAIN = {"label": "accuracy", "value": "mse", "next": "satisfied"}
CALLED = {
    "majority": "the most frequent class",
    "mean": "the mean answer of each place",
    "true": "true pictures (ceiling)",
}
TEXTS = {
    "mnli": "MNLI: does the premise entail the hypothesis?",
    "snli": "SNLI: does the premise entail the hypothesis?",
    "qqp": "QQP: do two questions ask the same?",
    "qnli": "QNLI: does the sentence answer the question?",
    "sst2": "SST-2: does a film's critic like it?",
    "sst2_text": "SST-2: does a film's critic like it?",
}
MEASURE = {
    "label": "accuracy",
    "value": "mean squared error, height squared",
    "next": "statements met",
}
COLUMNS = {
    "label": ("accuracy [%]", "printed [%]", "cross-entropy [nats]", "weights"),
    "value": ("mean squared error [height²]", "share of convolutions alone",
              "partner's share of the gradients [%]", "map's likeness to attention's", "weights"),
    "next": ("own statements met [%]", "other statements met [%]", "ratio",
             "surprise [nats a token]", "weights"),
}  # fmt: skip
SHOWN = (1, 2, 3, 5, 10, 20)  # trials
NOTES = (
    "Intervals are the central 90 % over test rows, of one training. Networks are small and "
    "trained for seconds or minutes: compare them with each other and with the bounds. Printed "
    "numbers are of validation rows, of networks of 11 million weights; beside generated pairs "
    "those of SNLI."
)


def called(arm: str) -> str:
    """A row's name."""
    return CALLED.get(arm, label(arm))


def best_first(content: Content, dataset: str) -> list[str]:
    """The arms of a set, from the best on; then what needs no training."""
    metric = MAIN[content["about"][dataset]["task"]]
    sign = 1 if metric == "mse" else -1

    def place(arm: str) -> tuple[bool, float]:
        value = content["arms"][f"{dataset}/{arm}"]["metrics"][metric]["mean"]
        return arm in CALLED, sign * value

    return sorted(cells_of(content["arms"], dataset), key=place)


def results(content: Content, dataset: str, printed: dict[str, Printed]) -> Table:
    """A row an arm."""
    task, arms = content["about"][dataset]["task"], best_first(content, dataset)
    told = {arm: content["arms"][f"{dataset}/{arm}"]["metrics"] for arm in arms}
    errors = {arm: mine["mse"]["mean"] for arm, mine in told.items() if "mse" in mine}
    alone = next((one for arm, one in errors.items() if arm.startswith("unmixed")), None)
    rows = []
    for arm in arms:
        weights = [
            f"{cell['weights']:,}"
            for name, cell in content["cells"].items()
            if name.startswith(f"{dataset}/{arm}-s") and "weights" in cell
        ]
        main = number(told[arm][MAIN[task]], True, 1 if task == "value" else 100)
        more = beyond(task, told[arm], beside(printed, dataset, arm), alone)
        rows.append((called(arm), main, *more, weights[0] if weights else NONE))
    return Table(dataset, ("model", *COLUMNS[task]), tuple(rows), best=0)


def beyond(
    task: str, mine: dict[str, Any], other: Printed | None, alone: float | None
) -> tuple[str, ...]:
    """The columns behind an arm's main number; `alone`: the error of convolutions alone."""
    if task == "label":
        theirs = f"{other.accuracy:.1f} ({other.source})" if other else NONE
        return theirs, number(mine.get("cross_entropy"))
    if task == "value":
        share = f"{mine['mse']['mean'] / alone:.3f}" if alone else NONE
        return share, number(mine.get("partner"), True, 100), number(mine.get("likeness"), True)
    ratio = mine["satisfied"]["mean"] / mine["satisfied_other"]["mean"]
    others = number(mine["satisfied_other"], True, 100)
    return others, f"{ratio:.2f}", number(mine.get("nats"))


def shares(content: Content) -> dict[str, list[str]]:
    """Sets of one origin of which another share of the rows trains, the fewest rows first, by the
    name of the one with the most; sets without such a companion are none."""
    found: dict[str, list[str]] = {}
    for name, about in content["about"].items():
        origin = json.dumps([about.get("made"), about.get("text")], sort_keys=True)
        found.setdefault(origin, []).append(name)
    ordered = (sorted(names, key=lambda one: rows_of(content, one)) for names in found.values())
    return {names[-1]: names for names in ordered if len(names) > 1}


def rows_of(content: Content, dataset: str) -> int:
    """How many rows of a set train."""
    return int(content["about"][dataset]["rows"]["train"])


def amounts(content: Content, dataset: str) -> dict[str, dict[int, list[float]]]:
    """The main number of each arm, over its seeds, by how many rows train, of the sets that differ
    from this one by that alone; nothing where no arm was trained on two of them."""
    names, metric = shares(content)[dataset], MAIN[content["about"][dataset]["task"]]
    found: dict[str, dict[int, list[float]]] = {}
    for name in names:
        for arm in cells_of(content["arms"], name):
            values = [
                float(cell["metrics"][metric]["value"])
                for key, cell in content["cells"].items()
                if key.startswith(f"{name}/{arm}-s")
            ]
            if values:
                found.setdefault(arm, {})[rows_of(content, name)] = values
    return found if any(len(mine) > 1 for mine in found.values()) else {}


def costs(content: Content) -> Table:
    """FLOPs of a layer and example by mixer and length, in millions."""
    curves = content["costs"]
    lengths = sorted(curves["hypermixing"], key=int)[::2]  # a file has them as words
    rows = tuple(
        (name, *(digits(mine[one] / 1e6) if one in mine else NONE for one in lengths),
         f"N = {content['crossings'][name]:,}" if name in content["crossings"] else NONE)
        for name, mine in curves.items()
    )  # fmt: skip
    titles = (*(f"N = {int(one):,}" for one in lengths), "fewer than attention from")
    return Table("costs", ("mixer", *titles), rows)


def edh(content: Content, dataset: str) -> dict[str, dict[str, Any]]:
    """The factors of the cost of a result (Schwartz et al. 2020), by model that was tuned: FLOPs of
    the longest example (E), rows that train (D), trials that tuning needs (H), and their product;
    None where more trials are needed than were made."""
    found, rows = {}, rows_of(content, dataset)
    for model, one in content["tuning"][dataset].items():
        flops = next(
            (cell["flops"] for name, cell in content["cells"].items()
             if name.startswith(f"{dataset}/{model}-") and "flops" in cell), None
        )  # fmt: skip
        if flops is not None:
            trials = one["needed"]
            whole = None if trials is None else flops * rows * trials
            found[model] = {"e": flops, "d": rows, "h": trials, "edh": whole}
    return found


def spent(content: Content, dataset: str) -> Table:
    """E, D, H and their product, the least first."""
    mine = content["edh"][dataset]
    ordered = sorted(mine, key=lambda model: (mine[model]["edh"] is None, mine[model]["edh"]))
    rows = tuple(
        (model, digits(one["e"] / 1e6), f"{one['d']:,}", *(
            (NONE, NONE) if one["h"] is None else (str(one["h"]), digits(one["edh"] / 1e9))
        ))
        for model, one in ((name, mine[name]) for name in ordered)
    )  # fmt: skip
    titles = ("E: FLOPs of an example [millions]", "D: rows that train", "H: trials needed",
              "E · D · H [billions]")  # fmt: skip
    return Table("edh", ("model", *titles), rows)


def tuning(content: Content, dataset: str) -> Table:
    """The best accuracy expected after k trials, the trials that are needed, and the best rate."""
    mine = content["tuning"][dataset]
    count = len(next(iter(mine.values()))["expected"])
    shown = [number for number in SHOWN if number < count] + [count]
    rows = []
    for model, one in sorted(mine.items(), key=lambda item: -item[1]["expected"][0]):
        best = int(np.argmax(one["accuracies"]))
        after = (f"{100 * one['expected'][number - 1]:.1f}" for number in shown)
        trials = f"more than {count}" if one["needed"] is None else str(one["needed"])
        rows.append((model, *after, trials, digits(one["learning_rates"][best])))
    titles = (f"after {number} [%]" for number in shown)
    return Table(
        "tuning", ("model", *titles, "trials needed", "best learning rate"), tuple(rows), best=0
    )


def sentence(about: dict[str, Any]) -> str:
    """What the set is."""
    rows, groups = about["rows"], about.get("groups")
    split = f"{rows['train']:,} rows train, {rows['val']:,} select, {rows['test']:,} test."
    if about["every"] > 1:
        split += f" Of what would train, every {about['every']}th row is used."
    left = about["dropped"].get("trains", 0)
    if told := about.get("text"):
        lost = sum(about["dropped"].values()) - left
        apart = f"{left:,} that train, too, were left out of the others"
        if groups:
            apart = (
                "those that share a question or a sentence stand in one split alone (intervals are "
                "over groups of such)"
            )
        elif told["form"] == "qnli" and not told.get("apart"):
            apart += ", but a question of what trains may test with its other sentence"
        return (
            f"{TEXTS[told['form']]} {split} {lost:,} rows could not be used, {apart}, "
            f"{about['cut']:,} were cut at {about['longest']} pieces. WordPiece has "
            f"{about['vocabulary']:,} pieces, learnt from what trains."
        )
    made = about["made"]
    if made["task"] == "pairs":
        apart = (
            f"Words that change nothing aside, {groups['train']:,} pairs train and "
            f"{groups['test']:,} others test; intervals are over these."
            if groups
            else f"{left:,} pairs that train, too, were left out of the others; but words that "
            "change nothing aside, each pair that tests also trains."
        )
        return (
            f"Sentence pairs: does the premise entail the hypothesis? {split} {apart} The law is "
            "known: the best accuracy is 100 %."
        )
    if made["task"] == "shapes":
        floor = about["bound"]["mse"]
        return (
            f"Two triangles and two boxes; each answer is as high as its kind is on the mean. "
            f"{split} The answers' noise leaves a mean squared error of {floor:.4f} at best."
        )
    return (
        f"Pictures of {made['high']} × {made['wide']} with up to {made['points']} coloured points, "
        f"drawn from up to {made['statements']} statements. {split} {prompts(about)} A parser "
        "checks each statement in each drawn picture; other statements are those of another row."
    )


def prompts(about: dict[str, Any]) -> str:
    """For whose statements pictures are drawn."""
    if "drawn" not in about:
        return "Rows that test may repeat rows, or the statements of rows, that train."
    tests, known, drawn = about["rows"]["test"], about["prompts_that_train"], about["drawn"]
    again = drawn["prompts_that_train"]
    whom = f"rows, of which {again:,} train, too" if again else "others"
    return (
        f"{about['dropped']['trains']:,} rows that train, too, were left out of the others. The "
        f"statements of {100 * known / tests:.0f} % of what tests stand together in a row that "
        f"trains, too; pictures are drawn for those of {drawn['rows']:,} {whom}."
    )
