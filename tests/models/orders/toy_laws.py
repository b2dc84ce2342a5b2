"""Exact laws in the network's place: what a perfect model would answer, by closed form or by a
table of all its sequences.

A law's state says what has been seen of a row; `see` adds a token and `predict` gives the
conditional law of positions. A token that was impossible leaves the state as it was (`lost` "skip":
a network that makes the best of it) or makes all that follows uniform ("uniform").
Shapes: R rows, S sequences of the table, T length, V vocabulary, N chains, K steps of a chain.
"""

import torch

LOW = -1e4  # the logit of what cannot be


class Law:
    """open -> a reader; subclasses: `fresh(rows)`, `see(state, position, token)` and
    `predict(state, positions)` -> probabilities (R, P, V)."""

    vocabulary, length, lost = 2, 1, "skip"

    def open(self, tokens, order, first):
        return Reader(self, tokens, order, first)


class Table(Law):
    """A joint law given by its sequences (S, T) and their probabilities (S,)."""

    def __init__(self, sequences, probabilities, vocabulary, lost="skip"):
        self.sequences, self.probabilities = sequences, probabilities / probabilities.sum()
        self.vocabulary, self.length, self.lost = vocabulary, sequences.shape[1], lost
        self.hot = torch.nn.functional.one_hot(sequences, vocabulary).to(probabilities)  # S T V

    def fresh(self, rows):
        return self.probabilities.repeat(rows, 1)

    def see(self, state, position, token):
        new = state * (self.sequences.T[position] == token[:, None])
        gone = new.sum(1, keepdim=True) <= 0
        return torch.where(gone, state if self.lost == "skip" else torch.zeros_like(state), new)

    def predict(self, state, positions):
        weights = (
            torch.einsum("rs,stv->rtv", state, self.hot)
            if self.length <= 16
            else (state @ self.hot.flatten(1)).unflatten(1, self.hot.shape[1:])
        )
        found = weights.gather(1, positions[..., None].expand(-1, -1, self.vocabulary))
        total = found.sum(2, keepdim=True)
        return torch.where(
            total > 0, found / total.clamp(min=1e-300), torch.full_like(found, 1 / self.vocabulary)
        )


class Permutation(Law):
    """Every permutation of T tokens alike."""

    def __init__(self, length):
        self.vocabulary = self.length = length

    def fresh(self, rows):
        return torch.ones(rows, self.length, dtype=torch.float64)

    def see(self, state, position, token):
        return state.scatter(1, token[:, None], 0)

    def predict(self, state, positions):
        left = state / state.sum(1, keepdim=True).clamp(min=1)
        return left[:, None].expand(-1, positions.shape[1], -1)


class Product(Law):
    """Independent binary tokens, 1 with `probability`."""

    def __init__(self, length, probability=0.1):
        self.length, self.law = (
            length,
            torch.tensor([1 - probability, probability], dtype=torch.float64),
        )

    def fresh(self, rows):
        return torch.zeros(rows, 1)

    def see(self, state, position, token):
        return state

    def predict(self, state, positions):
        return self.law.expand(*positions.shape, 2)


def step(length, ones, lost="skip"):
    """A step of `ones` at a uniform place among zeros."""
    starts = torch.arange(length - ones + 1)[:, None]
    places = torch.arange(length)
    return Table(
        ((places >= starts) & (places < starts + ones)).long(),
        torch.ones(len(starts), dtype=torch.float64),
        2,
        lost,
    )


def correlated(length, vocabulary, seed):
    """A full table with random, uneven probabilities."""
    from stages import seeds

    sequences = torch.cartesian_prod(*[torch.arange(vocabulary)] * length)
    return Table(
        sequences,
        torch.randn(
            len(sequences), generator=seeds.torch_stream(seed, "correlated"), dtype=torch.float64
        )
        .mul(1.5)
        .exp(),
        vocabulary,
    )


class Reader:
    """The samplers' protocol over a Law; counts what it was asked."""

    def __init__(self, law, tokens, order, first):
        self.law, self.vocabulary, self.length, self.calls, self.asked = (
            law,
            law.vocabulary,
            law.length,
            0,
            0,
        )
        self.state = law.fresh(len(tokens))
        for index in range(int(first.max()) if len(first) else 0):
            position = order[:, index]
            seen = law.see(self.state, position, tokens.gather(1, position[:, None])[:, 0])
            self.state = torch.where((index < first)[:, None], seen, self.state)

    def ask(self, bursts=None, orders=None, drafts=None):
        self.calls += 1
        marginal = None if bursts is None else self._logits(self.law.predict(self.state, bursts))
        if orders is None:
            return marginal, None
        (rows, chains, steps), found = orders.shape, []
        state, drafts = (
            self.state.repeat_interleave(chains, 0),
            orders * 0 if drafts is None else drafts,
        )  # a chain of one reads none
        for index in range(steps):
            position, token = orders[:, :, index].flatten(), drafts[:, :, index].flatten()
            found.append(self.law.predict(state, position[:, None])[:, 0])
            state = self.law.see(state, position, token)
        self.orders = orders
        return marginal, self._logits(torch.stack(found, 1).unflatten(0, (rows, chains)))

    def keep(self, choice, count, tokens):
        order = self.orders[torch.arange(len(choice)), choice]
        for index in range(int(count.max())):
            seen = self.law.see(self.state, order[:, index], tokens[:, index])
            self.state = torch.where((index < count)[:, None], seen, self.state)

    def retain(self, rows):
        self.state = self.state[rows]

    def _logits(self, probabilities):
        return probabilities.log().clamp(min=LOW)
