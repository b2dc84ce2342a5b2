"""What `tradewind init` says after it has looked at a file: how the set that it declared is
prepared, trained and scored; where a file cannot be declared, what works today.
"""

import shlex
from pathlib import Path

from stages.verbs.seen import Look

RECIPE = "CONTRIBUTING.md, Add a data set"
FITS = "tradewind.fit('msa', sets) fits a model to points of a field at once"
FIELDS = (
    f"{FITS} (reports/notebooks/fields.ipynb); audited results take a reader in "
    "stages/fields/problems (CONTRIBUTING.md, A set of a field)"
)
SEQUENCES = (
    "audited results take a reader in stages/sequences/data (CONTRIBUTING.md, A text, or other "
    "sequences)"
)
FIT = "tradewind.fit('sigma_gpt', {read}) fits a model at once (reports/notebooks/sequences.ipynb)"
READS = {  # how Python reads a file of sequences, by the end of its name
    ".npy": "numpy.load(FILE)",
    ".npz": "numpy.load(FILE)[NAME]",
    ".json": "json.load(open(FILE))",
    ".jsonl": "[json.loads(line) for line in open(FILE)]",
}
TRAINED = {  # entry -> experiment, and what a cell of it consists of
    "sequences": ("any_order", "sigma_gpt", "left_to_right", "60k"),
    "winds": ("wind_nowcast", "msa", "shared", "20k"),
}


def instead(path: Path, seen: Look) -> str:
    """What works today for a file that cannot be declared."""
    if seen.kind == "sequences":
        read = READS.get(path.suffix, "numpy.loadtxt(FILE, int)")
        return f"{FIT.format(read=read)}; {SEQUENCES}"
    if seen.kind in ("sets", "grid", "arrays", "JSON"):
        return FIELDS
    return (
        f"winds: write a reader for these columns ({RECIPE}, step 2). Points of a field: {FIELDS}. "
        f"Sequences of whole numbers: {FIT.format(read='sequences')}; {SEQUENCES}"
    )


def following(name: str, profile: str, folder: Path, entry: str) -> str:
    """What to do with a declared set: prepare it, declare a cell, train it, score a file."""
    sequences = entry == "sequences"
    prepare = "data/sequences/dvc.yaml:prepare" if sequences else "prepare"
    home, model, arm, size = TRAINED["sequences" if sequences else "winds"]
    cell = f"{model}-{arm}-{size}-s0"
    train = f"{profile}-{name}-{cell}"
    return "\n".join(
        (
            f"  python -m flows.profiles --set {profile}",
            f"  export TRADEWIND_MIRROR={shlex.quote(str(folder))}",
            f"  dvc repro {prepare}@{profile}-{name}",
            f"\nTo train on it, add a cell to `{profile}` of reports/{home}/cells.yaml:\n",
            f"    {train}: {{dataset: {name}, model: {model}, arm: {arm}, size: {size}, seed: 0}}",
            "\nThen train it, and score a file that it has not seen:\n",
            f"  dvc repro reports/{home}/dvc.yaml:train@{train}",
            f"  tradewind score {home}/{profile}/{name}/{cell} OTHER_FILE",
        )
    )
