"""What parts of params.yaml say of each other: names that meet nothing, lists that say twice,
budgets that are missing. Each function returns what is amiss, in words; `Params` tells it at once.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from stages.params.base import nearest
from stages.params.cells import challenger_problems
from stages.params.datasets import ENTRIES, Dataset
from stages.params.sections import Model, Profile, Split

FOLLOWING = (
    "is not a data set of the profile",
    "is not among its",
    "is not in ",
    "is missing",
    "no cell of",
)  # what is said of a right name where a profile's list has a wrong one


def causes(
    problems: list[str], profiles: Mapping[str, Profile], datasets: Mapping[str, Dataset]
) -> list[str]:
    """The problems without those that only follow from a name in a profile's lists that no data
    set has: of one slip of the pen one line."""
    for name, profile in profiles.items():
        own = (f"profiles.{name}.", "reports/", "retraining.")
        others = (part.datasets for part in profile.families.values())
        lists = (profile.datasets, profile.wind, profile.sequences, *others)
        wrong = {one for names in lists for one in names if one not in datasets}
        roots = {
            problem
            for problem in problems
            for one in wrong
            if f": {one!r} is unknown" in problem or f".wind: {one!r} is not among" in problem
        }
        problems = [
            problem
            for problem in problems
            if not roots
            or problem in roots
            or not problem.startswith(own)
            or (problem.startswith("reports/") and f": {name}." not in problem)
            or not any(words in problem for words in FOLLOWING)
        ]
    return problems


def set_problems(
    name: str, profile: Profile, datasets: Mapping[str, Dataset], trained: set[str]
) -> list[str]:
    """What does not fit among a profile's problems: unknown data sets, ones that are no sets,
    budgets without sets, and `trained` sets without a budget."""
    problems = [
        f"profiles.{name}.sets.{dataset}: "
        + (
            "there is no such data set" + nearest(dataset, datasets)
            if dataset not in datasets
            else f"enters as {datasets[dataset].entry}, not as sets"
        )
        for dataset in profile.sets
        if dataset not in datasets or datasets[dataset].entry != "sets"
    ]
    problems += [
        f"profiles.{name}.{part}: {dataset!r} is not in its "
        f"`problems`{nearest(dataset, profile.problems)}"
        for part in ("sets", "learning")
        for dataset in getattr(profile, part)
        if dataset not in profile.problems
    ]
    problems += [
        f"profiles.{name}.sets: {dataset!r} is missing"
        for dataset in profile.problems
        if dataset not in profile.sets
    ]
    problems += [
        f"profiles.{name}.learning: {dataset!r} is missing"
        for dataset in profile.problems
        if dataset in trained and dataset not in profile.learning
    ]
    return problems + [
        f"profiles.{name}.learning.{dataset}.targets: more than the "
        f"{profile.sets[dataset].targets} of a set"
        for dataset, budget in profile.learning.items()
        if dataset in profile.sets and (budget.targets or 0) > profile.sets[dataset].targets
    ]


def sequence_problems(
    name: str, profile: Profile, datasets: Mapping[str, Dataset], trained: set[str]
) -> list[str]:
    """What does not fit among a profile's sequences: unknown data sets, ones that are none,
    `trained` ones without a budget or an evaluation."""
    problems = [
        f"profiles.{name}.sequences: "
        + (
            f"{dataset!r} is unknown{nearest(dataset, datasets)}"
            if dataset not in datasets
            else f"{dataset!r} enters as {datasets[dataset].entry}, not as sequences"
        )
        for dataset in profile.sequences
        if dataset not in datasets or datasets[dataset].entry != "sequences"
    ]
    problems += [
        f"profiles.{name}.readings: {dataset!r} is missing"
        for dataset in profile.sequences
        if dataset not in profile.readings
    ]
    problems += [
        f"profiles.{name}.{part}: {dataset!r} is not in its "
        f"`sequences`{nearest(dataset, profile.sequences)}"
        for part in ("readings", "learning_orders")
        for dataset in getattr(profile, part)
        if dataset not in profile.sequences
    ]
    learned = [dataset for dataset in profile.sequences if dataset in trained]
    problems += [
        f"profiles.{name}.learning_orders: {dataset!r} is missing"
        for dataset in learned
        if dataset not in profile.learning_orders
    ]
    if learned and profile.orders is None:
        problems.append(f"profiles.{name}.orders: missing, but there are cells to evaluate")
    return problems


def family_problems(name: str, profile: Profile, datasets: Mapping[str, Dataset]) -> list[str]:
    """What does not fit among the data sets of families with a schema of their own: unknown ones,
    ones of another family."""
    problems = []
    for family, part in profile.families.items():
        where = f"profiles.{name}.families.{family}.datasets"
        for dataset in part.datasets:
            if dataset not in datasets:
                problems.append(f"{where}: {dataset!r} is unknown{nearest(dataset, datasets)}")
            elif datasets[dataset].entry != family:
                entry = datasets[dataset].entry
                problems.append(f"{where}: {dataset!r} enters as {entry}, not as {family}")
        if len({*part.datasets}) < len(part.datasets):
            problems.append(f"{where}: a data set stands there twice")
    return problems


def entry_problems(datasets: Mapping[str, Dataset], profiles: Mapping[str, Profile]) -> list[str]:
    """Data sets that enter at a level that there is not."""
    families = sorted({family for profile in profiles.values() for family in profile.families})
    *first, last = map(repr, ENTRIES)
    known = f"{', '.join(first)} or {last}" + "".join(f", or {family!r}" for family in families)
    return [
        f"datasets.{name}.entry is {dataset.entry!r}, not {known}"
        for name, dataset in datasets.items()
        if dataset.entry not in (*ENTRIES, *families)
    ]


def plan_problems(profile: Profile) -> list[str]:
    """What a profile cannot run: a list that says something twice, splits that meet."""
    problems = []
    for key in ("datasets", "acquired", "wind", "example", "problems", "sequences"):
        values = getattr(profile, key)
        problems += [
            f"{key}: {value!r} stands there {values.count(value)} times"
            for value in sorted(set(values))
            if values.count(value) > 1
        ]
    return problems + search_problems(profile) + split_problems(profile)


def split_problems(profile: Profile) -> list[str]:
    """Splits without an interval, and intervals that overlap."""
    problems = []
    for dataset, prepare in profile.prepare.items():
        if prepare.split is None:
            continue
        intervals = [
            (split, interval)
            for split in Split.model_fields
            for interval in getattr(prepare.split, split)
        ]
        problems += [
            f"prepare.{dataset}.split.{split}: no interval"
            for split in Split.model_fields
            if not getattr(prepare.split, split)
        ]
        problems += [
            f"prepare.{dataset}.split: {a} {list(left)} and {b} {list(right)} overlap"
            for (a, left), (b, right) in combinations(intervals, 2)
            if left[0] < right[1] and right[0] < left[1]
        ]
    return problems


def search_problems(profile: Profile) -> list[str]:
    """Lists of the search that say something twice, and prepared sets that the profile does not
    prepare."""
    if profile.search is None:
        return []
    search, sets = profile.search, profile.search.sets
    lists = {
        **{key: getattr(search, key) for key in ("neighbours", "segments", "fetch", "leaves")},
        "sets.original": sets.original,
        "sets.synthetic": sets.synthetic,
    }
    problems = [
        f"search.{key}: {value!r} stands there {values.count(value)} times"
        for key, values in lists.items()
        for value in sorted(set(values))
        if values.count(value) > 1
    ]
    return problems + [
        f"search.sets.original: {name!r} is not among its wind{nearest(name, profile.wind)}"
        for name in sets.original
        if name not in profile.wind
    ]


def retraining_problems(whole: Any) -> list[str]:
    """A profile, data set or model that retraining names and that is not there."""
    asked = whole.retraining
    if asked.profile not in whole.profiles:
        return [
            (
                f"retraining.profile: {asked.profile!r} is "
                f"unknown{nearest(asked.profile, whole.profiles)}"
            )
        ]
    known = whole.profiles[asked.profile].wind
    named = {f"challengers[{i}]": address for i, address in enumerate(asked.challengers)}
    named["first_against"] = asked.first_against
    problems = []
    if asked.dataset not in known:
        problems.append(
            f"retraining.dataset: {asked.dataset!r} is not in profiles.{asked.profile}.wind"
            f"{nearest(asked.dataset, known)}"
        )
    problems += challenger_problems(asked.profile, asked.dataset, named, whole.cells)
    problems += [
        f"retraining.challengers: {address!r} stands there {asked.challengers.count(address)} times"
        for address in sorted({*asked.challengers})
        if asked.challengers.count(address) > 1
    ]
    models = {key: address.partition("/")[2].partition("-")[0] for key, address in named.items()}
    return problems + [
        f"retraining.{key}: {name!r} is no model{nearest(name, whole.models)}"
        for key, name in models.items()
        if name not in whole.models
    ]


MSA_WORDS = {
    "encoder": ("shared", "traditional"),
    "head": ("mean", "gaussian", "mixture", "quantile"),
    "block": ("plain", "tied"),
}
MSA_COUNTS = {"width": 4096, "heads": 4096, "layers": 256}  # each from 1 to this


def msa_problems(model: Model) -> list[str]:
    """Arguments of msa's arms (words) and sizes (counts) that it does not have or cannot take."""
    problems = []
    for key, sections, known in (
        ("arms", model.arms, MSA_WORDS),
        ("sizes", model.sizes, MSA_COUNTS),
    ):
        for name, arguments in sections.items():
            problems += [
                f"models.msa.{key}.{name}.{word} is not an argument{nearest(word, known)}"
                for word in arguments
                if word not in known
            ]
    for name, arm in model.arms.items():
        problems += [
            f"models.msa.arms.{name}.{word} is {arm[word]!r}, not one of {', '.join(allowed)}"
            for word, allowed in MSA_WORDS.items()
            if word in arm and arm[word] not in allowed
        ]
    for name, size in model.sizes.items():
        missing = [word for word in MSA_COUNTS if word not in size]
        wrong = [
            word
            for word, most in MSA_COUNTS.items()
            if word in size and not (type(size[word]) is int and 1 <= size[word] <= most)
        ]
        problems += [f"models.msa.sizes.{name}.{word} is missing" for word in missing]
        problems += [
            f"models.msa.sizes.{name}.{word} is {size[word]!r}, not from 1 to {MSA_COUNTS[word]}"
            for word in wrong
        ]
        if not {"width", "heads"} & {*missing, *wrong} and size["width"] % size["heads"]:
            problems.append(
                f"models.msa.sizes.{name}.width is {size['width']}, no multiple of its heads, "
                f"{size['heads']}"
            )
    return problems
