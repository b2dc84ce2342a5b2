"""Exact sampling of a few steps ahead at a time: exact.py's sample of the same noise, with less arithmetic where arithmetic decides.

exact.py checks all that remains at every pass, 4 to 11 times the positions of sequential decoding; on a batch those cost more than passes
saved. Here a pass checks the next `window` steps alone, of one chain, whose drafts are F of the pass before. exact.py's proof holds for
any drafts and any window: noise is drawn once, so the law is that of sequential sampling.
A network is read by a Strip, which lies along the order as a Column does, but whose rows go at their own pace.
Shapes: B batch, R rows at work, T length, K steps checked, V vocabulary, W width, H heads, L lanes.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.errors import InputError
from stages.models.orders.lean import Lean
from stages.models.orders.sampling import Sample, gumbel, prompts
from stages.models.orders.sigma_gpt import SigmaGPT

WINDOW = 16  # steps: what suits most of the laboratory's tasks, at batch 1 and at 25


@torch.inference_mode()
def windowed(law, order: Int64[Tensor, "B T"], tokens: Int64[Tensor, "B T"], generator: torch.Generator, first: int | Tensor = 0,
             window: int = WINDOW, guess: Tensor | None = None, noise: Float[Tensor, "B T V"] | None = None) -> Sample:
    """`exact` with drafts "chain", at most `window` steps a pass. A row's passes, like its sample, do not depend on its batch.

    First drafts: `guess` (B, T, by position, from anywhere), checked in the pass that reads the prompt; or (None) a burst over all that
    remains, a pass that also settles the first step. K tokens take at most K passes. InputError for a window below 1 or a guess that does not fit.
    """
    if window < 1:
        raise InputError("no such window", found=repr(window), expected="at least one step")
    if guess is not None and guess.shape != order.shape:
        raise InputError("the guess does not fit the orders", found=str(tuple(guess.shape)), expected=str(tuple(order.shape)))
    work = _Work(law, order, tokens, prompts(tokens, order, first))
    if noise is None:
        noise = gumbel((*order.shape, law.vocabulary), generator)
    work.begin(noise, guess)
    while len(work.ids):
        work.check(window)
    return work.told()


class _Work:
    """Rows at work, along their orders: `along` (R, T+2) a zero, the tokens and drafts, and one place for what is thrown away; `known` (R,)
    settled steps, `deep` the same as a list; `noise` (R, T+1, V). `trail`: of every pass its rows, how many steps each had settled before
    it, and how many it computed after those."""

    def __init__(self, law, order: Tensor, tokens: Tensor, first: Tensor):
        self.length, self.first, self.ids = order.shape[1], first, (first < order.shape[1]).nonzero()[:, 0]
        zeros = (torch.zeros_like(first) for _ in range(3))
        self.sample = Sample(tokens.clone(), order.clone(), *zeros, torch.zeros_like(order))
        self.order, self.known = order[self.ids], first[self.ids]
        self.along = functional.pad(tokens[self.ids].gather(1, self.order), (1, 1))
        opened = (law, tokens[self.ids], self.order, self.known)
        self.reader = (_Asked if hasattr(law, "open") else Strip)(*opened) if len(self.ids) else None
        self.trail: list[tuple[Tensor, list[int], list[int]]] = []
        self.steps, self.deep = torch.arange(self.length, device=order.device), self.known.tolist()

    def begin(self, noise: Tensor, guess: Tensor | None) -> None:
        """Lay out the noise (B, T, V, by position) and the first drafts; a burst settles the first step."""
        if not len(self.ids):
            return
        noise = noise[self.ids].gather(1, self.order[..., None].expand(-1, -1, noise.shape[2]))
        drafts = (self.reader.burst(self.along) + noise).argmax(2) if guess is None else guess[self.ids].gather(1, self.order)
        self.along[:, 1:-1] = torch.where(self.steps < self.known[:, None], self.along[:, 1:-1], drafts)
        self.noise, self.prompt = functional.pad(noise, (0, 0, 0, 1)), guess is not None
        if guess is None:
            self._settle(torch.ones_like(self.known), [self.length - known for known in self.deep])

    def check(self, window: int) -> None:
        """One pass: settle what the next `window` steps make sure, and draft anew what they do not."""
        low, high, prompt = min(self.deep), max(self.deep), self.prompt
        start = 0 if prompt else low  # the prompt is read with the first check
        width = min((high if prompt else low) + window, self.length) - start
        if prompt or low == high:
            place, draft, noise = None, self.along[:, start + 1:start + width + 1], self.noise[:, start:start + width]
        else:
            place = (self.known[:, None] + self.steps[:width]).clamp_(max=self.length)
            draft, noise = self.along.gather(1, place + 1), self.noise[torch.arange(len(place), device=place.device)[:, None], place]
        truth = (self.reader.ask(self.along, start, width, place, high) + noise).argmax(2)
        agree, self.prompt = truth == draft, False
        if prompt:
            steps, known = self.steps[:width], self.known[:, None]
            agree, truth = agree | (steps < known), torch.where((steps >= known) & (steps < known + window), truth, draft)
        count = agree[:, :-1].long().cumprod(1).sum(1) + 1
        if place is None:
            draft.copy_(truth)
        else:
            self.along.scatter_(1, place + 1, truth)
            count = torch.minimum(count, self.length - self.known)
        reach = [min(window, self.length - known) for known in self.deep]
        self._settle((count - self.known).clamp_(max=window) if prompt else count, reach)

    def _settle(self, count: Tensor, reach: list[int]) -> None:
        """`count` (R,) more steps are settled, of `reach` that were computed; finished rows leave, the last rows take their places."""
        self.trail.append((self.ids, self.deep, reach))
        self.known = self.known + count
        self.deep = self.known.tolist()
        if max(self.deep) < self.length:
            self.reader.keep(count, self.along)
            return
        done = self.known >= self.length
        ids, order, left = self.ids[done], self.order[done], int((~done).sum())
        self.sample.tokens[ids] = torch.empty_like(order).scatter(1, order, self.along[done, 1:-1])
        rows = torch.arange(left, device=done.device)
        rows[done[:left]] = left + (~done[left:]).nonzero()[:, 0]
        if left:
            self.reader.keep(count, self.along)
            self.reader.retain(rows)
        self.order, self.along, self.known, self.noise, self.ids = (
            part[rows] for part in (self.order, self.along, self.known, self.noise, self.ids))
        self.deep = self.known.tolist()

    def told(self) -> Sample:
        """The sample with what it cost, and the round of every step: one more than the passes after which it was not settled."""
        sample = self.sample
        sample.positions += self.first  # the prompt's
        for ids, before, reach in self.trail:
            sample.passes[ids] += 1
            sample.positions[ids] += torch.tensor(reach, device=ids.device)
            sample.when[ids] += (self.steps >= torch.tensor(before, device=ids.device)[:, None]).long()
        sample.when.masked_fill_(self.steps < self.first[:, None], 0)
        sample.rounds = sample.passes.clone()
        return sample


class Strip:
    """A network whose keys and values lie along the order, those of a step at its place. What a check finds wrong is written over by the
    next one, before anything reads it: a step sees the places up to its own alone."""

    def __init__(self, model: SigmaGPT, tokens: Int64[Tensor, "R T"], order: Int64[Tensor, "R T"], first: Int64[Tensor, " R"]):
        self.lean, (rows, self.length), self.first = Lean(model), order.shape, first
        own = functional.pad(order[:, :-1], (1, 0), value=-1)
        self.own, self.order = own, order
        self.places = functional.pad(self.lean.places(own, order), (0, 0, 0, 1))  # R T+1 W
        kept = (rows, self.length + 1, 2, self.lean.heads, self.lean.lanes)
        self.memory = [layer.inward.new_zeros(kept) for layer in self.lean.layers]
        self.hidden = torch.full((self.length + 1,) * 2, -torch.inf, dtype=self.places.dtype, device=order.device).triu_(1)

    def burst(self, along: Int64[Tensor, "R T2"]) -> Float[Tensor, "R T V"]:
        """Read the prompts, and answer each step after them as if it were asked next; what the prompts' steps answer is of no use."""
        steps = torch.arange(self.length, device=along.device)
        asked = torch.where(steps < self.first[:, None], steps, self.first[:, None])
        seen, places = along.gather(1, asked), self.lean.places(self.own.gather(1, asked), self.order)
        visible = (steps < torch.minimum(self.first[:, None], steps + 1)[..., None]) | (steps == steps[:, None])
        mask = torch.zeros_like(visible, dtype=places.dtype).masked_fill_(~visible, -torch.inf)[:, None]
        return self._read(seen, places, 0, None, self.length, mask)

    def ask(self, along: Int64[Tensor, "R T2"], start: int, width: int, place: Tensor | None, deepest: int) -> Float[Tensor, "R K V"]:
        """One pass: logits of `width` steps of every row given the tokens and drafts before each; from `start` on, or at `place` (R, K)."""
        if place is None:
            end = start + width
            mask = self.hidden[start:end, :end] if width > 1 else None
            return self._read(along[:, start:end], self.places[:, start:end], start, None, end, mask)
        end = min(deepest + width, self.length + 1)
        flat = (place + (self.length + 1) * torch.arange(len(place), device=place.device)[:, None]).flatten()
        places = self.places.flatten(0, 1).index_select(0, flat).view(*place.shape, -1)
        mask = self.hidden[:, :end].index_select(0, place.flatten()).view(*place.shape, end)[:, None]
        return self._read(along.gather(1, place), places, 0, flat, end, mask)

    def _read(self, seen: Tensor, places: Tensor, start: int, flat: Tensor | None, end: int, mask: Tensor | None) -> Tensor:
        (rows, width), lean = seen.shape, self.lean

        def mix(index: int, parts: Tensor) -> Tensor:
            memory, fresh = self.memory[index], parts[:, 1:]
            if flat is None:
                memory[:, start:start + width] = fresh.unflatten(0, (rows, width))
            else:
                memory.flatten(0, 1).index_copy_(0, flat, fresh)
            query, (key, value) = parts[:, 0].unflatten(0, (rows, width)), memory[:, :end].unbind(2)
            return functional.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (query, key, value)), attn_mask=mask,
                                                           scale=lean.scale).transpose(1, 2)
        return lean.answer(lean.run(seen.flatten(), places.flatten(0, 1), mix)).view(rows, width, -1)

    def keep(self, count: Int64[Tensor, " R"], along: Int64[Tensor, "R T2"]) -> None:
        """Nothing to do: what is settled lies at its place."""

    def retain(self, rows: Int64[Tensor, " M"]) -> None:
        """Row i is now what row rows[i] was; rows that stay where they are cost nothing."""
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        for index, memory in enumerate(self.memory):
            memory[moved] = memory[rows[moved]]
            self.memory[index] = memory[:len(rows)]
        self.places = self.places[rows]


class _Asked:
    """The same of a law that opens its own reader (sampling/__init__.py)."""

    def __init__(self, law, tokens: Tensor, order: Tensor, first: Tensor):
        self.reader, self.order, self.known, self.asked = law.open(tokens, order, first), order, first, False

    def burst(self, along: Tensor) -> Tensor:
        """Logits of every step; those of given ones are of no use."""
        return self.reader.ask(bursts=self.order)[0]

    def ask(self, along: Tensor, start: int, width: int, place: Tensor | None, deepest: int) -> Tensor:
        """Logits from `start` on or at `place`; the reader already knows what is settled, so only the steps after that are asked."""
        length, steps = self.order.shape[1], torch.arange(start + width - int(self.known.min()), device=along.device)
        at = (self.known[:, None] + steps).clamp(max=length - 1)
        self.orders = self.order.gather(1, at)
        found = self.reader.ask(orders=self.orders[:, None], drafts=along.gather(1, at + 1)[:, None])[1][:, 0]
        self.asked = True
        if place is not None:
            return found
        back = torch.arange(start, start + width, device=along.device) - self.known[:, None]
        return found.gather(1, back.clamp(min=0)[..., None].expand(-1, -1, found.shape[2]))

    def keep(self, count: Tensor, along: Tensor) -> None:
        """Tell the reader what is settled; after a burst alone it has nothing to keep, and the first step is asked once more."""
        if not self.asked:
            steps = self.order[:, None].gather(2, self.known[:, None, None])
            self.reader.ask(orders=steps)
            self.orders = steps[:, 0]
        at = (self.known[:, None] + torch.arange(self.orders.shape[1], device=along.device)).clamp(max=self.order.shape[1] - 1)
        self.reader.keep(torch.zeros_like(count), count, along.gather(1, at + 1))
        self.known = self.known + count

    def retain(self, rows: Tensor) -> None:
        """Row i is now what row rows[i] was."""
        self.reader.retain(rows)
        self.order, self.known = self.order[rows], self.known[rows]
