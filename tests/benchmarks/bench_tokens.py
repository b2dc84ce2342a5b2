"""Speed of token mixing, as ratios in one run, and how much training moves the numbers of the
experiment token_mixing.

`python -m tests.benchmarks.bench_tokens [--quick]` (`make bench-tokens`): one layer forward and
backward on 16,384 tokens, in sequences of N each: HyperMixing, linear attention, HyperMLP and the
house's attention over torch's fused nn.MultiheadAttention, at d = 256, d' = 512, and the lengths
where they cross (thesis, figure 2.2a); HyperMLP, which keeps tensors of N x N, up to 4,096 tokens;
the memory of one sequence; the exponent of N in HyperMixing's time; tied over untied; training of
the frame over nn.TransformerEncoder of equal shape. Ends with the goals, met or missed.
`... --spreads PROFILE` trains the profile's first arm of each model again with another seed, in a
scratch folder, and writes data/spreads/PROFILE/token_mixing.json; it needs the evaluated experiment
(`dvc repro`).
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from stages import files, seeds
from stages.params import load
from stages.spreads import of_seeds, place
from stages.tokens import measure
from stages.tokens.contract import Batch
from stages.tokens.costs import HIDDEN, RANK, READ, ROUTE, WIDTH
from stages.tokens.models import build
from stages.tokens.parts.attending import LinearAttention, SelfAttention
from stages.tokens.parts.dynamic import DynamicMLP
from stages.tokens.parts.hyper import HyperMix
from stages.tokens.sets import Sets
from stages.tokens.settings import made_of, tokens_of
from stages.training import cells, loop, store
from stages.training.checkpoint import Checkpoints
from tests.benchmarks import clock
from tests.benchmarks.scaling import exponent

LENGTHS, ROUNDS = (64, 256, 1024, 4096, 16384), 5
TOKENS, QUICK = 16384, 1024  # of a call, in sequences of one length
GROWN = (1024, 4096, 16384, 65536)  # the lengths whose times give an exponent
# goals: HyperMixing over attention from a length on, and at the longest; tied over untied;
# the exponent; tokens a second of the frame over torch's
FROM, EVEN, LONGEST, SIXTEENTH, TIED, LINEAR, SPEED = 256, 1.0, 16384, 0.07, 0.65, 1.1, 0.9
SQUARED = 4096  # the longest of a mixer that keeps tensors of N x N
EXPERIMENT, FURTHER = "token_mixing", 1  # the seed beside the cells' own
Step = Callable[[], object]
Goal = tuple[str, float, float, bool]  # its words, the value, the bar, and whether that is the most


def told(times: clock.Times, yardstick: str, title: str) -> None:
    """Print each contender's time over the yardstick's, with the least and the most of rounds."""
    for name in times.rounds_ms:
        found = times.ratios(name, yardstick)
        ends = f"{found['low']:.2f} to {found['high']:.2f}"
        print(f"{title}: {name} / {yardstick}: {found['ratio']:.2f} ({ends})", flush=True)


def layer_step(mixer: nn.Module, count: int, examples: int = 1) -> Step:
    """One layer forward and backward on examples of so many tokens each."""
    tokens = torch.randn(examples, count, WIDTH, requires_grad=True)
    real = torch.ones(examples, count, dtype=torch.bool)
    if isinstance(mixer, nn.MultiheadAttention):
        return lambda: mixer(tokens, tokens, tokens, need_weights=False)[0].sum().backward()
    return lambda: mixer(tokens, real).sum().backward()


def crossings(raced: dict[int, clock.Times], name: str, yardstick: str) -> list[float]:
    """The length from which a contender is faster than the yardstick, by rounds: where the line
    through the logarithms of the ratios meets 0. The shortest length where it is faster there, inf
    where it never is."""
    lengths, found = sorted(one for one in raced if name in raced[one].rounds_ms), []
    for number in range(min(len(raced[one].others) for one in lengths)):
        ratios = [raced[one].rounds_ms[name][number] / raced[one].rounds_ms[yardstick][number]
                  for one in lengths]  # fmt: skip
        above = [place for place, ratio in enumerate(ratios) if ratio > 1]
        if not above:
            found.append(float(lengths[0]))
        elif above[-1] + 1 == len(lengths):
            found.append(math.inf)
        else:
            place = above[-1]
            one, other = (math.log(ratio) for ratio in ratios[place : place + 2])
            step = math.log(lengths[place + 1] / lengths[place])
            found.append(lengths[place] * math.exp(step * one / (one - other)))
    return found


def crossed(raced: dict[int, clock.Times], yardstick: str) -> None:
    """Print from which length each contender is faster than the yardstick, and over rounds."""
    for name in next(iter(raced.values())).rounds_ms:
        if name != yardstick:
            found = crossings(raced, name, yardstick)
            if math.isinf(statistics.median(found)):
                print(f"{name} is nowhere faster than {yardstick}", flush=True)
                continue
            print(f"{name} is faster than {yardstick} from N = {statistics.median(found):,.0f} on "
                  f"({min(found):,.0f} to {max(found):,.0f})", flush=True)  # fmt: skip


def layers(rounds: int, lengths: tuple[int, ...], tokens: int) -> list[Goal]:
    """One layer of each mixer over torch's fused attention, the memory of one example, and the
    lengths where they cross; the goals."""
    raced, goals = {}, []
    for count in lengths:
        mixers = {
            "torch": nn.MultiheadAttention(WIDTH, 8, batch_first=True),
            "hypermixing": HyperMix(WIDTH, HIDDEN, 1, True, "layer", False),
            "hypermixing, untied": HyperMix(WIDTH, HIDDEN, 1, False, "layer", False),
            "hypermixing, 8 heads": HyperMix(WIDTH, HIDDEN, 8, True, "layer", False),
            "linear attention": LinearAttention(WIDTH, 8),
            "attention": SelfAttention(WIDTH, 8, False),
        }
        if count <= SQUARED:
            mixers["HyperMLP"] = DynamicMLP(WIDTH, count, 2, ROUTE, READ, RANK, False)
        held = {name: kept(one, count) for name, one in mixers.items()}
        told_memory(held, count)
        examples = max(tokens // count, 1)
        steps = {name: layer_step(one, count, examples) for name, one in mixers.items()}
        times = clock.race({name: clock.Contender(one, 1) for name, one in steps.items()}, rounds)
        raced[count] = times
        told(times, "torch", f"N = {count:,}")
        tied = times.ratio("hypermixing", "hypermixing, untied")
        print(f"N = {count:,}: tied / untied: {tied:.2f}")
        ratio = times.ratio("hypermixing", "torch")
        if count >= FROM:
            bar = SIXTEENTH if count == LONGEST else EVEN
            goals.append((f"HyperMixing / torch at N = {count:,}", ratio, bar, True))
            goals.append((f"tied / untied at N = {count:,}", tied, TIED, True))
    crossed(raced, "torch")
    print(f"tied / untied: {products():.2f} of the products; no bar below that can be met")
    return goals


def products() -> float:
    """What tied weights leave of an untied layer's products, which time cannot fall below."""
    tied, untied = (HyperMix(WIDTH, HIDDEN, 1, one, "layer", False) for one in (True, False))
    return tied.flops(1) / untied.flops(1)


def kept(mixer: nn.Module, count: int) -> float:
    """MiB of the tensors that one layer keeps of one example for the way back; what the fused
    attention recomputes it does not keep."""
    seen: dict[int, int] = {}

    def keep(saved: torch.Tensor) -> torch.Tensor:
        storage = saved.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return saved

    tokens = torch.randn(1, count, WIDTH, requires_grad=True)
    real = torch.ones(1, count, dtype=torch.bool)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        if isinstance(mixer, nn.MultiheadAttention):
            out = mixer(tokens, tokens, tokens, need_weights=False)[0]
        else:
            out = mixer(tokens, real)
    assert out.requires_grad
    weights = {one.untyped_storage().data_ptr() for one in mixer.parameters()}
    return sum(size for place, size in seen.items() if place not in weights) / 2**20


def told_memory(held: dict[str, float], count: int) -> None:
    """Print what each layer keeps of one example."""
    told = ", ".join(f"{name} {one:.3g}" for name, one in held.items())
    print(f"N = {count:,}: MiB kept of one example: {told}", flush=True)


def growth(lengths: tuple[int, ...], rounds: int) -> Goal:
    """The exponent of N in the time of a layer of HyperMixing on one example."""
    mixer = HyperMix(WIDTH, HIDDEN, 1, True, "layer", False)
    found = []
    for count in lengths:
        step = layer_step(mixer, count)
        step()
        found.append(min(clock.once(step) for _ in range(rounds)))
    return "exponent of N in HyperMixing's time", exponent([*lengths], found), LINEAR, True


def training(rounds: int) -> Goal:
    """A training step of the frame over torch's encoder of equal shape: tokens a second."""
    given = {"width": 64, "layers": 2, "feed": 128, "heads": 4, "layout": "post_norm"}
    data = {"task": "label", "vocabulary": 1000, "outputs": 3, "longest": 128}
    inputs = torch.randint(1, 1000, (16, 128))
    batch = Batch(inputs, inputs > 0, inputs[:, 0] % 3, inputs > 0)
    block = nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True)
    theirs = nn.Sequential(nn.Embedding(1000, 64), nn.TransformerEncoder(block, 2))
    head = nn.Linear(64, 3)
    ours = build("self_attention", given, data)
    lost = nn.functional.cross_entropy
    steps = {
        "torch": lambda: lost(head(theirs(inputs).mean(1)), batch.targets).backward(),
        "frame": lambda: lost(ours(batch).values, batch.targets).backward(),
    }
    times = clock.race({name: clock.Contender(one, 1) for name, one in steps.items()}, rounds)
    told(times, "torch", "training step")
    return "tokens/s of the frame / torch's", times.ratio("torch", "frame"), SPEED, False


def judged(goals: list[Goal]) -> None:
    """Print every goal, met or missed; times are for reading, so that none fails the command."""
    for name, value, bar, most in goals:
        met = value <= bar if most else value >= bar
        print(f"goal: {name} at {'most' if most else 'least'} {bar:g}: {value:.3g}, "
              f"{'met' if met else 'missed'}", flush=True)  # fmt: skip


def moved(profile: str) -> Iterator[dict]:
    """Spreads over seeds by kind of model: the cells as evaluated, and the first arm of each model
    and set trained with another seed; after each, what is known by then."""
    parameters = load()
    tokens, home = tokens_of(parameters, profile), Path("reports", EXPERIMENT, profile)
    found, seen = {}, set()
    for cell in parameters.trained(EXPERIMENT, profile).cells.values():
        if (cell.dataset, cell.model) in seen:
            continue
        seen.add((cell.dataset, cell.model))
        evaluated = files.read_json(home / "evaluated" / cell.dataset / "metrics.json")
        known = evaluated["cells"][cell.name]["metrics"]
        prepared, budget = Path("data", profile, "prepared", cell.dataset), tokens.training
        sets, named = Sets.open(prepared), cells.Cell(cell.model, cell.arm, cell.size, FURTHER)
        seeds.everything(FURTHER)
        chosen = cells.arguments(named, parameters)
        model, mine = build(cell.model, chosen, sets.dimensions), budget[cell.dataset]
        settings = loop.Settings(
            mine.steps, mine.validate_every, mine.patience, mine.learning_rate,
            parameters.training.clip, FURTHER, slices=mine.batch, schedule=mine.schedule,
        )  # fmt: skip
        kept, run = Checkpoints(files.WORK / "spreads" / named.name), files.WORK / "spreads/run"
        kept.clear()
        history = loop.train(model, sets, settings, kept)
        kept.clear()
        run.mkdir(parents=True, exist_ok=True)
        metadata = {**vars(named), "arguments": chosen, **sets.dimensions}
        (run / "weights.safetensors").write_bytes(store.dump(model, metadata))
        files.write_json(run / "history.json", history)
        made = made_of(parameters, cell.dataset)
        data = measure.Data.open(prepared, made, tokens, parameters.training.seed, "cpu")
        again = measure.network(run, data, 1).entry["metrics"]
        for name, metrics in ((cell.name, known), (named.name, again)):
            found[f"{cell.dataset}/{name}"] = {"metrics": metrics}
        print(cell.dataset, named.name, {k: v["value"] for k, v in again.items()}, flush=True)
        yield {"between": [], "rounding": {}, "seeds": of_seeds({"cells": found})}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds, short sequences")
    parser.add_argument("--spreads", metavar="PROFILE", help="measure spreads instead of times")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.spreads:
        for known in moved(asked.spreads):
            files.write_json(place(EXPERIMENT, asked.spreads), known)
        return 0
    quick = asked.quick
    rounds, lengths = (2, LENGTHS[:3]) if quick else (ROUNDS, LENGTHS)
    goals = layers(rounds, lengths, QUICK if quick else TOKENS)
    goals += [growth(GROWN[:2] if quick else GROWN, rounds), training(rounds)]
    judged(goals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
