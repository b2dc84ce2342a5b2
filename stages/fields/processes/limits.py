"""How many context points a model may be asked to answer from.

Memory never stands in the way: attention is made in blocks. Time does: where every context point
reads every other, a million of them are 10^12 pairs a layer, which is days of a core and would
begin without a word. What is linear in the points answers a million in seconds.
"""

from stages.errors import InputError

PAIRED = 20_000  # context points of a model that pairs them all: minutes of a core


def refuse_many(model: str, arm: str, contexts: int, where: str) -> None:
    """InputError for more context points than a model of this arm answers from in minutes."""
    if contexts > PAIRED and (model == "tetnp" or (model, arm) == ("tnp", "attention")):
        raise InputError(
            f"{model} pairs all context points: so many would take days",
            where=where,
            expected=f"at most {PAIRED:,}",
            found=f"{contexts:,}",
            remedy="ask fewer, or a model that is linear in them: tnp with the arm linear or "
            "hyper, pseudo_tnp, convcnp, neural_process",
        )
