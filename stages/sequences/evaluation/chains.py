"""Laws that a finite automaton draws token by token, and their exact densities: product, step, walk
and grammar (thesis D.1, D.2).

A chain has states and edges; an edge leads from a state to a state, carries a token and has a
chance. The forward and backward sums over its edges give the density of every token given any set
of others, in float64, for laws far too large to list. State 0 is the first. Built from a law as
sequences.json tells it, not with the simulators' code.
Shapes: N sequences, T tokens of each, V of the vocabulary, S states, E edges. Chances without unit,
their logarithms in nats.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from stages.errors import DataError

ROWS = 100  # sequences worked on at once


@dataclass(frozen=True)
class Chain:
    """Edges of an automaton over `states` states and a vocabulary of `letters` tokens."""

    origin: np.ndarray  # E
    letter: np.ndarray  # E
    target: np.ndarray  # E
    chance: np.ndarray  # E
    states: int
    letters: int

    def _gather(self, ends: np.ndarray, size: int) -> sparse.csr_array:
        return sparse.csr_array(
            (np.ones(len(ends)), (ends, np.arange(len(ends)))), shape=(size, len(ends))
        )

    def _filtered(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normalised forward sums (T + 1, N, S) and the logarithms of what they were divided by
        (T, N). weight: N T V, 1 or 0."""
        count, length, _ = weight.shape
        sums, logs = np.zeros((length + 1, count, self.states)), np.zeros((length, count))
        sums[0, :, 0] = 1
        into = self._gather(self.target, self.states)
        for t in range(length):
            new = (into @ (sums[t][:, self.origin] * self.chance * weight[:, t, self.letter]).T).T
            total = new.sum(1)
            with np.errstate(divide="ignore"):
                logs[t] = np.log(total)
            sums[t + 1] = new / np.where(total > 0, total, 1)[:, None]
        return sums, logs

    def log_chance(self, tokens: np.ndarray) -> np.ndarray:
        """Nats of each whole sequence (N): minus infinity for one that the law cannot draw, a
        token out of the vocabulary included."""
        return np.concatenate(
            [
                self._filtered(self._weight(part, np.ones(part.shape, bool)))[1].sum(0)
                for part in _parts(tokens)
            ]
        )

    def legal(self, tokens: np.ndarray) -> np.ndarray:
        """How many tokens of each sequence (N) stand before the first that the law cannot draw
        after those before it."""
        finite = [
            np.isfinite(self._filtered(self._weight(part, np.ones(part.shape, bool)))[1])
            for part in _parts(tokens)
        ]
        return np.concatenate([np.logical_and.accumulate(part, axis=0).sum(0) for part in finite])

    def _weight(self, tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        return np.where(
            known[..., None], tokens[..., None] == np.arange(self.letters), True
        ).astype(np.float64)

    def conditionals(self, tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The density of each token given those that are `known` (N T, bool): N T V. DataError
        where the known ones are impossible."""
        found = np.empty((*tokens.shape, self.letters))
        by_letter = self._gather(self.letter, self.letters)
        back = self._gather(self.origin, self.states)
        for begin in range(0, len(tokens), ROWS):
            rows = slice(begin, begin + ROWS)
            weight = self._weight(tokens[rows], known[rows])
            sums, logs = self._filtered(weight)
            refuse_impossible(np.isfinite(logs).all(0), begin)
            after = np.ones((len(weight), self.states))
            for t in reversed(range(tokens.shape[1])):
                edges = self.chance * weight[:, t, self.letter] * after[:, self.target]
                density = (by_letter @ (sums[t][:, self.origin] * edges).T).T
                found[rows, t] = density / density.sum(1, keepdims=True)
                after = (back @ edges.T).T
                after /= after.max(1, keepdims=True)
        return found

    def entropy(self, length: int) -> float:
        """Expected nats of a sequence of `length` tokens, where the tokens so far tell the state
        (they do in all chains of this file)."""
        held, total = np.zeros(self.states), 0.0
        held[0] = 1
        into = self._gather(self.target, self.states)
        for _ in range(length):
            flow = held[self.origin] * self.chance
            total -= float((flow * np.log(self.chance)).sum())
            held = into @ flow
        return total


def _parts(tokens: np.ndarray) -> Iterable[np.ndarray]:
    return (tokens[begin : begin + ROWS] for begin in range(0, len(tokens), ROWS))


def refuse_impossible(possible: np.ndarray, begin: int = 0) -> None:
    """DataError that names the first sequence whose known tokens its law cannot draw (possible:
    N, bool)."""
    if not possible.all():
        raise DataError(
            "known tokens have no chance under the law",
            where=f"sequence {begin + int(np.argmin(possible))}",
            expected="tokens that the law can draw together",
            remedy="ask for valid sequences only",
        )


def grown(
    first: Hashable, ways: Callable[[Any], Iterable[tuple[int, float, Hashable]]], letters: int
) -> Chain:
    """The chain of all states within reach of `first`. ways(state): (token, chance, next state)
    of edges; without chance none."""
    number, edges, waiting = {first: 0}, [], [first]
    while waiting:
        state = waiting.pop()
        chance: Any
        target: Any
        letter: Any
        for letter, chance, target in ways(state):
            if chance <= 0:
                continue
            if target not in number:
                number[target] = len(number)
                waiting.append(target)
            edges.append((number[state], letter, number[target], chance))
    origin: Any
    origin, letter, target, chance = (np.array(column) for column in zip(*edges, strict=True))
    return Chain(origin, letter, target, chance.astype(np.float64), len(number), letters)


def product(law: dict[str, Any]) -> Chain:
    """One state: 1 with the chance `share`, else 0."""
    return grown((), lambda state: [(0, 1 - law["share"], ()), (1, law["share"], ())], 2)


def step(law: dict[str, Any]) -> Chain:
    """Zeros before the run (of `places` begins, one as likely as the other), the ones of the
    run, zeros after it."""

    def ways(state: tuple[str, int]):
        part, at = state
        if part == "before":
            return [
                (1, 1 / (law["places"] - at), ("run", 1)),
                (0, 1 - 1 / (law["places"] - at), ("before", at + 1)),
            ]
        return (
            [(1, 1.0, ("run", at + 1))]
            if part == "run" and at < law["width"]
            else [(0, 1.0, ("after", 0))]
        )

    return grown(("before", 0), ways, 2)


def walk(law: dict[str, Any]) -> Chain:
    """A state an altitude, and the one before the start. No walk of the law's length leaves the
    vocabulary."""
    move = (1 - law["stay"]) / 2

    def ways(at: int):
        if at < 0:
            return [(start, 1 / len(law["starts"]), start) for start in law["starts"]]
        return [
            (at + by, chance, at + by)
            for by, chance in ((-1, move), (0, law["stay"]), (1, move))
            if 0 <= at + by < law["vocabulary"]
        ]

    return grown(-1, ways, law["vocabulary"])


def grammar(law: dict[str, Any]) -> Chain:
    """A state: the numbers (plural or not) of the nouns that wait for their verbs, what may come
    next, and the letters of it so far."""
    code = {letter: number for number, letter in enumerate(law["letters"])}

    def words(pending: tuple[bool, ...], free: str) -> list[tuple[str, float, Hashable]]:
        """What may come now, with its chance and what is pending then. free: noun, clause (a
        clause or the verb) or verb."""
        if free == "noun":
            return [
                (
                    f"the {noun}{'s' * plural} ",
                    chance / len(law["nouns"]),
                    ((*pending, plural), "clause"),
                )
                for noun in law["nouns"]
                for plural, chance in ((False, 1 - law["plural"]), (True, law["plural"]))
            ]
        nested = law["nested"] if free == "clause" and len(pending) <= law["deepest"] else 0.0
        verbs, end, then = (
            (law["verbs"], ". ", ((), "noun"))
            if len(pending) == 1
            else (law["seeing"], " ", (pending[:-1], "verb"))
        )
        return [
            ("that ", nested, (pending, "noun")),
            *(
                (f"{verb}{'s' * (not pending[-1])}{end}", (1 - nested) / len(verbs), then)
                for verb in verbs
            ),
        ]

    def ways(state):
        pending, free, said = state
        chances: dict[str, float] = {}
        targets: dict[str, Hashable] = {}
        for word, chance, then in words(pending, free):
            if chance > 0 and word.startswith(said):
                letter = word[len(said)]
                chances[letter] = chances.get(letter, 0.0) + chance
                targets[letter] = (
                    (*then, "") if len(word) == len(said) + 1 else (pending, free, said + letter)
                )
        total = sum(chances.values())
        return [
            (code[letter], chance / total, targets[letter]) for letter, chance in chances.items()
        ]

    return grown(((), "noun", ""), ways, len(law["letters"]))


CHAINS = {"product": product, "step": step, "walk": walk, "grammar": grammar}
