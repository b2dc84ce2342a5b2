"""What bench_sequences measured, as text: its tables and goals."""

from tests.benchmarks.sequence_samplers import SEQUENTIAL


def spread(row: dict) -> str:
    """A ratio with what it lies between."""
    return f"{row['ratio']:.2f} ({row['low']:.2f}-{row['high']:.2f})"


def as_text(content: dict) -> str:
    """The tables and the goals."""
    machine = content["machine"]
    device = machine["gpu"] if content["device"].startswith("cuda") else machine["cpu"]
    lines = [
        (
            f"{device}, torch {machine['versions']['torch']}, {machine['threads']} thread(s); "
            f"others used {content['others_cores']:.2f} cores; {content['seconds']:.0f} s"
        )
    ]
    if not content["quiet"]:
        lines.append("WARNING: other processes were busy: run it again on a quiet machine")
    if content["quick"]:
        lines.append("WARNING: a quick run: its sequences are too short to judge the goals by")
    goal_lines = [
        f"{'met ' if row['met'] else 'MISS'}  {row['goal']}: {row['value']:.3g} (at "
        f"{row['at']} {row['bar']:g}{row['work']})"
        for row in content["goals"]
    ]
    tables = (cache_table, sampling_table, validity_table, training_table)
    return "\n".join(
        [*lines, *(line for table in tables for line in table(content)), "", *goal_lines]
    )


def cache_table(content: dict) -> list[str]:
    """Lines: decoding with keys and values kept, and without."""
    head = (
        f"{'decoding':10} {'parameters':>10} {'tokens':>6} {'batch':>5} {'cached ms':>10} "
        f"{'uncached':>11} {'(min-max)':>20}"
    )
    return [head] + [
        f"{row['size']:10} {row['parameters']:10,} {row['tokens']:6} {row['batch']:5} "
        f"{row['ms']:10.1f} {row['uncached_ms']:11.1f} {spread(row):>20}"
        for row in content["cache"]
    ]


def sampling_table(content: dict) -> list[str]:
    """Lines: samplers against sequential decoding, and tasks that were left out."""
    learning = content["learning"]
    lines = [
        (
            "\nSamplers against cached sequential decoding, a sequence; product: learnt here in "
            f"{learning['steps']} steps, {learning['seconds']:.1f} s, to {learning['nats']:.3f} "
            f"nats a token (entropy {learning['entropy']:.3f})"
        ),
        (
            f"{'task':12} {'batch':>5} {'sampler':12} {'ms':>8} {'seq. ms':>8} "
            f"{'ratio (min-max)':>20} {'passes':>7} {'(seq.)':>7} {'positions':>9} {'(seq.)':>7}"
        ),
    ]
    lines += [
        f"{row['task']:12} {row['batch']:5} {row['sampler']:12} {row['ms']:8.2f} "
        f"{row['sequential_ms']:8.2f} {spread(row):>20} {row['passes']:7.2f} "
        f"{row['sequential_passes']:7.2f} {row['positions']:9.1f} "
        f"{row['sequential_positions']:7.1f}"
        for row in content["sampling"]
    ]
    return lines + [f"{row['task']:12} left out: {row['skipped']}" for row in content["skipped"]]


def validity_table(content: dict) -> list[str]:
    """Lines: what each sampler's samples are judged by."""
    lines = [
        f"\n{'task':12} {'sampler':12} {'judged by':10} {'value (90 %)':>26} {'unit':6} {'n':>6}"
    ]
    for row in content["validity"]:
        known = row["value"] is not None and row["low"] is not None
        within = f"{row['value']:.4g} ({row['low']:.4g}-{row['high']:.4g})" if known else "unknown"
        name = "sequential" if row["sampler"] == SEQUENTIAL else row["sampler"]
        lines.append(
            f"{row['task']:12} {name:12} {row['metric']:10} {within:>26} {row['unit']:6} "
            f"{row['n']:6}"
        )
    return lines


def training_table(content: dict) -> list[str]:
    """Lines: training steps against each yardstick."""
    head = (
        f"\n{'training':10} {'against':16} {'parameters':>21} {'tokens/s':>10} {'against':>10} "
        f"{'ratio (min-max)':>20}"
    )
    return [head] + [
        f"{row['size']:10} {row['against']:16} {row['parameters']:10,} "
        f"{row['against_parameters']:10,} {row['tokens_s']:10,.0f} "
        f"{row['against_tokens_s']:10,.0f} {spread(row):>20}"
        for row in content["training"]
    ]
