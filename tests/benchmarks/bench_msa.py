"""`python -m tests.benchmarks.bench_msa`: our MSA against the same on torch's
nn.TransformerEncoder, in one run.

Work: 700 context and 700 target points, batch 1, random. Step = zero_grad, forward, mean squared
error, backward, clip 4, Adam 3e-4; evaluation = forward in eval mode without gradients (where torch
takes its own fast path). Rounds are interleaved and medians compared; memory is the growth of the
peak resident size in a child process of its own. Goals: step 0.7, evaluation of 100k 0.4, memory 1.
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from stages.batches import single
from stages.fields.models import build
from stages.layers.kernels import attention as fused
from stages.layers.mlp import mlp

SIZES = {"5k": (12, 2, 3), "20k": (24, 2, 3), "100k": (32, 8, 9)}
POINTS, ROUNDS = 700, 9


class Yardstick(nn.Module):
    """The traditional encoders and the readout of MSA round the framework's own encoder."""

    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.context, self.target = mlp(5, width, width, width), mlp(3, width, width, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True)
        self.encoder, self.readout = (
            nn.TransformerEncoder(layer, layers),
            mlp(width, width, width, 2),
        )

    def forward(self, context_x: Tensor, context_y: Tensor, target_x: Tensor) -> Tensor:
        """B T O."""
        tokens = torch.cat(
            (self.context(torch.cat((context_x, context_y), -1)), self.target(target_x)), 1
        )
        return self.readout(self.encoder(tokens)[:, -target_x.shape[1] :])


def works(size: str, ours: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    """A training step and an evaluation, ready to be called."""
    torch.manual_seed(0)
    width, heads, layers = SIZES[size]
    points = [torch.randn(POINTS, n) for n in (3, 2, 3, 2)]
    batch = single(*points)
    dimensions = {"width": width, "heads": heads, "layers": layers}
    model = (
        build("msa", {"encoder": "traditional"}, dimensions) if ours else Yardstick(**dimensions)
    )
    predict = (
        (lambda: model(batch).mean)
        if ours
        else (lambda: model(batch.context_x, batch.context_y, batch.target_x))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, **({"fused": True} if ours else {}))

    def step() -> None:
        model.train()
        optimizer.zero_grad()
        (predict() - batch.target_y).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 4.0)
        optimizer.step()

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            predict()

    return step, evaluate


def peak_mib(size: str, ours: bool, part: int) -> float:
    """Growth of the peak resident size over three calls, in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        fused.attend(
            *2 * [torch.zeros(1, 1, 3, 1, 4, requires_grad=True)], None
        ).sum().backward()  # loads machine code, which is no model's memory
        call = works(size, ours)[part]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            call()
        os.write(writer, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        return int(stream.read()) / 1024


def main() -> None:
    """Print one row a size and kind of work."""
    argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_msa", description=__doc__.split("\n\n")[0]
    ).parse_args()
    memory = {
        (size, part, ours): peak_mib(size, ours, part)
        for size in SIZES
        for part in (0, 1)
        for ours in (True, False)
    }
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), {POINTS}+{POINTS} "
        f"points, medians of {ROUNDS}"
    )
    print(
        f"{'size':5} {'work':10} {'ours ms':>8} {'torch ms':>9} {'ratio':>6} {'ours MiB':>9} "
        f"{'torch MiB':>10}"
    )
    for size in SIZES:
        pair = {ours: works(size, ours) for ours in (True, False)}
        for part, name in enumerate(("step", "evaluation")):
            times: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(ROUNDS + 1):
                for ours in (True, False):
                    start = time.perf_counter()
                    pair[ours][part]()
                    times[ours].append(1e3 * (time.perf_counter() - start))
            mine, theirs = (statistics.median(times[ours][1:]) for ours in (True, False))
            print(
                f"{size:5} {name:10} {mine:8.2f} {theirs:9.2f} {mine / theirs:6.2f} "
                f"{memory[size, part, True]:9.1f} {memory[size, part, False]:10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
