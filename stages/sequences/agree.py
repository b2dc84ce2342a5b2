"""Whether what was prepared and evaluated of sequences says one thing (stages/audit/agreeing.py).

Prepared sequences are what the raw files give, prepared once more. Those of validation or test may
stand in training by chance, as training ones stand there twice: more often than that they may not.
Perplexity is nats, bits are nats, the curves of passes are the samplers' own numbers; what uniform
tokens and the training marginals cost follows from the prepared tokens; no model costs less than
the law's entropy. No stage runs this. Shapes: N sequences, T tokens, V vocabulary.
"""

import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages import params
from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.files import read_json
from stages.sequences import prepare
from stages.splits import SPLITS

ASKED = 96  # sequences of each side that are compared with all training ones, token by token
APART = 0.05  # of the tokens may differ between two that are alike
SIGMAS = 5.0
ENDS = {"": "value", "_low": "low", "_high": "high"}  # of a row's quality: of its metric
BETWEEN = 1e-3  # relative: an interval ends between two draws
FEW = 2  # copies more than chance allows, that nobody is told of
UNITS = {"perplexity": math.exp, "bits_per_character": lambda nats: nats / math.log(2)}


def prepared(home: Path) -> Found:
    """How prepared sequences are not what the raw files give; those of validation or test that
    stand in training more often than by chance."""
    profile = agreeing.parameters(Path.cwd() / params.WHOLE).profiles[home.parts[1]]
    with tempfile.TemporaryDirectory(prefix="agree-") as folder:
        again, raw = Path(folder, home.name), home.parents[1] / "raw" / home.name
        prepare.prepare(raw, again, profile.readings[home.name])
        yield from agreeing.unlike(home, again, raw)
    where = (home / "sequences.safetensors").as_posix()
    tensors, meta = load_file(home / "sequences.safetensors"), read_json(home / "sequences.json")
    tokens, split = tensors["tokens"], tensors["split"]
    if tokens.min() < 0 or tokens.max() >= meta["vocabulary"]:
        yield where, f"its tokens are not below {meta['vocabulary']}"
    for k, name in enumerate(SPLITS):
        if (count := int((split == k).sum())) != meta["counts"][name]:
            yield where, f"it holds {count:,} of {name}, sequences.json {meta['counts'][name]:,}"
    small = tokens.astype(np.uint8 if meta["vocabulary"] <= 256 else np.uint16)
    train, held = small[split == 0], small[split > 0]
    for what, found in (("are", same(train, held)), ("are nearly", nearly(train, held))):
        (hits, asked), (chance, of) = found
        share = chance / of if of else 0.0
        most = asked * share + SIGMAS * math.sqrt(asked * share * (1 - share)) + FEW
        if hits > most:
            text = f"{hits:,} of {asked:,} sequences of val or test {what} training ones"
            yield where, f"{text}, by chance it were {asked * share:.1f}"
            return


Hits = tuple[tuple[int, int], tuple[int, int]]  # (found, asked) of held ones, of training ones


def same(train: np.ndarray, held: np.ndarray) -> Hits:
    """How many held sequences stand in training, and how many training ones twice."""
    kind = np.dtype((np.void, train.dtype.itemsize * train.shape[1]))
    mine, other = (np.ascontiguousarray(one).view(kind).ravel() for one in (train, held))
    known, count = np.unique(mine, return_counts=True)
    twice = int(count[count > 1].sum())
    return (int(np.isin(other, known).sum()), len(other)), (twice, len(mine))


def nearly(train: np.ndarray, held: np.ndarray) -> Hits:
    """The same for sequences of which a few tokens differ, of some spread over either side."""
    most = max(1, int(APART * train.shape[1]))
    places = np.ascontiguousarray(train.T)  # sums of whole rows are four times as fast

    def hits(asked: np.ndarray, own: np.ndarray | None) -> int:
        found = 0
        for n, one in enumerate(asked):
            apart = (places != one[:, None]).sum(0, dtype=np.uint32)
            if own is not None:
                apart[own[n]] = train.shape[1]
            found += bool(apart.min() <= most)
        return found

    mine, other = (
        np.linspace(0, len(x) - 1, min(ASKED, len(x))).astype(int) for x in (train, held)
    )
    return (hits(held[other], None), len(other)), (hits(train[mine], mine), len(mine))


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where, told = (home / "metrics.json").as_posix(), read_json(home / "metrics.json")
    source = Path("data", home.parts[2], "prepared", home.name)
    tensors, meta = (
        load_file(source / "sequences.safetensors"),
        read_json(source / "sequences.json"),
    )
    if told["sequences"] != meta["counts"]:
        yield where, f"it counts {told['sequences']}, prepared are {meta['counts']}"
    for cell, entry in told["cells"].items():
        for text in units(entry["metrics"], meta):
            yield where, f"{cell}: {text}"
    for name, law in laws(tensors, meta).items():
        metrics = told["cells"].get(name, {}).get("metrics", {})
        for text in trivial(metrics, law, tensors, meta):
            yield where, f"{name}: {text}"
    yield from passes(home, told["cells"])
    yield from samples(home, told, tensors, meta)
    yield from agreeing.common(home)
    if "entropy" in told:
        for metric in ("nats", "nats_left_to_right", "nats_bound"):
            what = "the entropy of the law"
            yield from agreeing.impossible(home, metric, what, told["entropy"])


def units(metrics: dict[str, Any], meta: dict[str, Any]) -> Iterator[str]:
    """How perplexity or bits are not those of the nats. Of texts in pieces a token is no
    character."""
    for name, one in metrics.items():
        for unit, formula in UNITS.items():
            nats = metrics.get(name.replace(unit, "nats")) if name.startswith(unit) else None
            if nats is None or (unit != "perplexity" and meta["kind"] == "text"):
                continue
            for key, within in (("value", agreeing.SUMS), ("low", BETWEEN), ("high", BETWEEN)):
                if key in one and not near(formula(nats[key]), one[key], within):
                    yield f"the {key} of its {name}, {one[key]}, is not that of nats {nats[key]}"


def laws(tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> dict[str, np.ndarray]:
    """The probabilities (T, V) of what needs no training."""
    size, train = meta["vocabulary"], tensors["tokens"][tensors["split"] == 0]
    counted = np.stack([np.bincount(place, minlength=size) for place in train.T]) + 1.0
    uniform = np.full((meta["length"], size), 1 / size)
    return {"uniform": uniform, "marginals": counted / counted.sum(1, keepdims=True)}


def trivial(
    metrics: dict[str, Any], law: np.ndarray, tensors: dict[str, np.ndarray], meta: dict[str, Any]
) -> Iterator[str]:
    """How the nats of a known law are not those of the prepared tokens."""
    for split in ("val", "test"):
        one = metrics.get("nats" if split == "test" else f"nats_{split}")
        asked = tensors["tokens"][tensors["split"] == SPLITS.index(split)][:, meta["prompt"] :]
        nats = float(-np.log(law[np.arange(meta["prompt"], meta["length"]), asked]).mean())
        if one is not None and not near(nats, one["value"]):
            yield f"the prepared tokens of {split} cost {nats} nats, not {one['value']}"
        if one is not None and one["n"] != asked.size:
            yield f"it counts {one['n']:,} tokens of {split}, prepared are {asked.size:,}"


def passes(home: Path, cells: dict[str, Any]) -> Found:
    """How the curves of passes are not the samplers' own numbers."""
    file, found = home / "passes.json", set()
    for row in read_json(file)["rows"]:
        cell, sampler, prompt = key = row["cell"], row["sampler"], row["prompt"]
        found.add(key)
        metrics = cells[cell]["samplers"][sampler][prompt]["metrics"]
        told = {"quality" + end: metrics.get(row["metric"], {}).get(of) for end, of in ENDS.items()}
        for name in ("passes", "positions", "rounds"):
            one = metrics.get(name, {})
            told |= {name: one.get("value"), f"{name}_sd": one.get("sd")}
        if any(row.get(name) != value for name, value in told.items()):
            text = f"its row of {' '.join(key)} is not what metrics.json says of these samples"
            yield file.as_posix(), text
    every = {
        (cell, sampler, prompt)
        for cell, entry in cells.items()
        for sampler, prompts in entry["samplers"].items()
        for prompt in prompts
    }
    for key in sorted(every ^ found):
        yield file.as_posix(), f"{' '.join(key)} stands in one of it and metrics.json alone"


def samples(
    home: Path, told: dict[str, Any], tensors: dict[str, np.ndarray], meta: dict[str, Any]
) -> Found:
    """How the shown samples are no sequences, or do not keep what they were given."""
    file, prompt = home / "samples.safetensors", meta["prompt"]
    given = tensors["tokens"][told["shown"]]
    for name, made in load_file(file).items():
        if not name.endswith("/tokens"):
            continue
        if made.min() < 0 or made.max() >= meta["vocabulary"]:
            yield file.as_posix(), f"{name} holds tokens that are none"
        prompted = name.endswith("/prompt/tokens") and made.shape == given.shape
        if prompted and not np.array_equal(made[:, :prompt], given[:, :prompt]):
            yield file.as_posix(), f"{name} does not keep the prompts that it was given"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.sequences.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
