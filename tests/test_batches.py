"""The fields contract: sets of any sizes become one padded batch, and nothing of a set is lost
or invented."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.batches import Batch, collate, single

SIZES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=4)


def made(context: int, target: int, seed: int, values: bool = True) -> Batch:
    draw = torch.Generator().manual_seed(seed)

    def rand(n, d):
        return torch.randn(n, d, generator=draw)

    return single(
        rand(context, 3), rand(context, 2), rand(target, 3), rand(target, 2) if values else None
    )


@given(sizes=SIZES)
def test_collate_keeps_every_point_and_masks_every_other(sizes):
    singles = [made(context, target, seed) for seed, (context, target) in enumerate(sizes)]
    batch = collate(singles)
    assert batch.context_x.shape == (
        len(sizes),
        max(c for c, _ in sizes),
        3,
    ) and batch.target_y.shape == (len(sizes), max(t for _, t in sizes), 2)
    for row, (one, (context, target)) in enumerate(zip(singles, sizes, strict=True)):
        for name, count in (
            ("context_x", context),
            ("context_y", context),
            ("target_x", target),
            ("target_y", target),
        ):
            padded = getattr(batch, name)[row]
            assert torch.equal(padded[:count], getattr(one, name)[0])
            assert not padded[count:].any()
        assert batch.context_mask[row].tolist() == [True] * context + [False] * (
            batch.context_mask.shape[1] - context
        )
        assert batch.target_mask[row].tolist() == [True] * target + [False] * (
            batch.target_mask.shape[1] - target
        )
    assert batch.context_mask.dtype == batch.target_mask.dtype == torch.bool


def test_a_batch_of_batches_is_the_batch_of_all():
    a, b, c = (made(n, n, n) for n in (1, 3, 2))
    nested, flat = collate([collate([a, b]), c]), collate([a, b, c])
    assert all(
        torch.equal(getattr(nested, name), getattr(flat, name))
        for name in Batch.__dataclass_fields__
    )


def test_one_set_without_target_values_leaves_the_batch_without():
    assert collate([made(2, 2, 0), made(2, 2, 1, values=False)]).target_y is None
    assert made(2, 2, 0, values=False).to("cpu").target_y is None


def test_to_moves_every_tensor():
    moved = made(2, 3, 0).to("meta")
    assert all(value.device.type == "meta" for value in vars(moved).values())


def test_a_batch_cannot_be_changed():
    with pytest.raises(AttributeError):
        made(1, 1, 0).context_x = torch.zeros(1)
