"""WordPiece (thesis 2.5.1 takes BERT's; Schuster and Nakajima 2012), trained on what trains, or
with a vocabulary that is given.

Words are lowercased and parted at blanks and punctuation, as BERT-Base uncased does; a piece within
a word begins with "##". Piece 0 is padding, another stands for what no piece spells, one parts a
pair's sentences. The `tokenizers` library counts and merges; the same sentences give the same
pieces.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.errors import DataError, InputError

PAD, UNKNOWN, SEPARATOR = SPECIAL = ("[PAD]", "[UNK]", "[SEP]")


class Pieces:
    """Pieces by their numbers, and what sentences are in them."""

    def __init__(self, words: Sequence[str]):
        library = _library()
        self.words = list(words)
        numbers = {word: number for number, word in enumerate(words)}
        self.model = library.Tokenizer(library.models.WordPiece(numbers, unk_token=UNKNOWN))
        self.model.normalizer = library.normalizers.BertNormalizer(lowercase=True)
        self.model.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()

    @classmethod
    def learnt(cls, training: Sequence[str], count: int) -> "Pieces":
        """At most `count` pieces, from training sentences."""
        library = _library()
        normal = library.normalizers.BertNormalizer(lowercase=True)
        words = library.pre_tokenizers.BertPreTokenizer()
        learner = library.Tokenizer(library.models.WordPiece(unk_token=UNKNOWN))
        learner.normalizer, learner.pre_tokenizer = normal, words
        # the library numbers "##a", "##b", ... as its table of words happens to lie, and breaks
        # ties by these numbers: named here, they have an order
        letters = sorted({one for text in training for one in normal.normalize_str(text)} - {" "})
        trainer = library.trainers.WordPieceTrainer(
            vocab_size=count,
            special_tokens=[*SPECIAL, *(f"##{letter}" for letter in letters)],
            show_progress=False,
        )
        learner.train_from_iterator(training, trainer)
        found = learner.get_vocab()
        # a new model, without those names, of which a text may hold one
        return cls(sorted(found, key=found.__getitem__))

    @classmethod
    def read(cls, file: Path) -> "Pieces":
        """Those of a vocabulary, a piece a line, the first padding. DataError for a file without
        the pieces that every text needs, or with one twice."""
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                "a vocabulary is not UTF-8 text", where=f"{file}, byte {error.start}"
            ) from None
        words = text.removesuffix("\n").split("\n")  # a piece may be another mark that parts lines
        twice = [word for word, count in Counter(words).items() if count > 1]
        lacking = [one for one in SPECIAL if one not in words]
        if twice or lacking or words[0] != PAD:
            raise DataError(
                "a vocabulary is none of WordPiece",
                where=str(file),
                expected=f"a piece a line, {PAD} first, {UNKNOWN} and {SEPARATOR} among them",
                found=f"{words[:1]} first, twice: {twice[:3]}, lacking: {lacking}",
            )
        return cls(words)

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The pieces' numbers of each sentence."""
        return [found.ids for found in self.model.encode_batch(list(sentences))]


def _library() -> Any:
    """The tokenizers library, in one thread. InputError where it is not installed."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.normalizers
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise InputError(
            "WordPiece needs the tokenizers library",
            found="it is not installed",
            remedy="`pip install -c constraints.txt -e '.[text]'`",
        ) from None
    return tokenizers
