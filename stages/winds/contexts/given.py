"""What a model is given of a prepared data set: the context that it asks for (`model.context`) and
the targets of one slice.

"slice", "hour" and "day" are one set of standardised places for all targets of the slice
(stages/winds/pairs.py); "neighbours" and "recent" are local contexts (nearby.py). All know the
same: what was measured before the forecast was issued, one lead before the slice begins, save
"day", which is not causal. Shapes: B sets, C context points of each, T targets in all.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from stages import params
from stages.batches import Batch, single
from stages.winds.contexts.cache import Cache
from stages.winds.contexts.nearby import KINDS, MeasuredWinds, Nearby
from stages.winds.pairs import Pairs


@dataclass(frozen=True)
class Given:
    """One slice for one model: the batch, and which rows of the prepared data stand in it."""

    batch: Batch
    target_rows: np.ndarray  # (T,)
    context_rows: np.ndarray  # (B, C), -1 where padded

    def shuffled(self, rng: np.random.Generator) -> "Given":
        """The same with the context's values dealt anew in each set by itself. Of local contexts
        that tells nothing of a mean: dealt.py deals theirs among all rows."""
        if len(self.context_rows) == 1:
            order = rng.permutation(self.context_rows.shape[1])[None]
        else:  # the padding lies last and stays there
            order = np.argsort(
                np.where(self.context_rows >= 0, rng.random(self.context_rows.shape), 2.0), axis=1
            )
        values = torch.take_along_dim(self.batch.context_y, torch.from_numpy(order)[..., None], 1)
        return replace(self, batch=replace(self.batch, context_y=values))


class Contexts:
    """The contexts of one prepared data set, for any model."""

    def __init__(self, pairs: Pairs, settings: params.Contexts, cache: Cache | None = None):
        self.pairs, self.settings, self.cache = pairs, settings, cache

    @classmethod
    def open(
        cls, prepared: str | Path, settings: params.Contexts, cache: str | Path | None = None
    ) -> "Contexts":
        """Prepared data, and the neighbours computed beforehand where the folder `cache` holds
        them. DataError for what does not fit."""
        pairs = Pairs.open(prepared)
        return cls(
            pairs,
            settings,
            Cache.open(cache, pairs, settings)
            if cache is not None and Path(cache).exists()
            else None,
        )

    @cached_property
    def nearby(self) -> Nearby:
        """The local contexts of all rows."""
        pairs = self.pairs
        return Nearby(
            MeasuredWinds(
                pairs.t_s, pairs.places, pairs.winds, tuple(pairs.meta["scaler"]["x_mean"])
            ),
            self.settings,
        )

    def given(self, slice: int, model: Any, lead_s: float | None = None) -> Given:
        """Context and targets of one slice, at the split's lead or another."""
        if model.context not in KINDS:
            pair = self.pairs.pair(slice, model.context, lead_s)
            arrays = (pair.context_x, pair.context_y, pair.target_x, pair.target_y)
            return Given(
                single(*map(torch.from_numpy, arrays)), pair.target_rows, pair.context_rows[None]
            )
        targets = np.arange(*self.pairs.rows_of(slice))
        places = self.pairs.places(targets)
        t_s = self.pairs.t_s[targets]
        issue_s = self.pairs.issue_s(slice, lead_s)
        rows = self._cached(slice, model, lead_s)
        if rows is None:
            rows = self.nearby.rows(places, t_s, issue_s, model)
        return Given(
            self.nearby.batch(rows, places, t_s, issue_s, self.pairs.winds(targets)), targets, rows
        )

    def _cached(self, slice: int, model: nn.Module, lead_s: float | None) -> np.ndarray | None:
        """The neighbours (T, C) computed beforehand, if they are what this model would find now."""
        if (
            self.cache is None
            or model.context != "neighbours"
            or lead_s not in (None, self.pairs.meta["lead_s"])
        ):
            return None
        if model.places > self.settings.places or model.metric(torch.zeros(1, 4)) is not None:
            return None
        found = self.cache.rows(slice)
        return None if found is None else found[:, : model.places].astype(np.int64)
