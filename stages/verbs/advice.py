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
PUBLISHED = {  # our columns by the names of a published table of winds, which has their units
    "ts_s": "ts",
    "icao": "icao",
    "lat_deg": "lat",
    "lon_deg": "lon",
    "alt_ft": "alt",
    "u_m_s": "vwx",
    "v_m_s": "vwy",
}
TRAINED = {  # entry -> experiment, and what a cell of it consists of
    "sequences": ("any_order", "sigma_gpt", "left_to_right", "60k"),
    "winds": ("wind_nowcast", "msa", "shared", "20k"),
}


def instead(path: Path, seen: Look) -> str:
    """What works today for a file that cannot be declared."""
    if seen.kind == "our winds":
        return _winds(path, seen)
    if seen.kind == "sequences":
        read = READS.get(path.suffix, "numpy.loadtxt(FILE, int)")
        return f"{FIT.format(read=read)}; {SEQUENCES}"
    if seen.kind in ("sets", "grid", "arrays", "JSON"):
        return FIELDS
    return (
        f"winds: write a reader for these columns ({RECIPE}, step 2). Points of a field: {FIELDS}. "
        f"Sequences of whole numbers: {FIT.format(read='sequences')}; {SEQUENCES}"
    )


def _winds(path: Path, seen: Look) -> str:
    """Of winds with our columns: what a table to train on has besides."""
    context = f"these winds are a context (`tradewind nowcast --context {shlex.quote(str(path))}`)"
    told = [one.name for one in seen.columns]
    lacking = [name for name in PUBLISHED if name not in told]
    if lacking:
        return (
            f"{context}; a table to train on names the aircraft of each row (icao) and has all of "
            f"{', '.join(PUBLISHED)}, by their published names {', '.join(PUBLISHED.values())}: "
            f"here is no {', '.join(lacking)}"
        )
    names = ",".join(PUBLISHED.get(name, name) for name in told)
    plain = not any(note.startswith("columns parted") for note in seen.notes)
    if path.suffix != ".csv" or not plain:
        return f"{context}; to train on them write CSV parted by commas with the header {names}"
    new = shlex.quote(f"{path.stem}_named.csv")
    return (
        f"{context}; to train on them give the columns their published names, of the same units:\n"
        f"    sed '1s/.*/{names}/' {shlex.quote(str(path))} > {new}\n"
        f"    tradewind init {new}"
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
