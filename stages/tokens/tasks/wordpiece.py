"""WordPiece (thesis 2.5.1 takes BERT's; Schuster and Nakajima 2012), trained on what trains.

Words are lowercased and parted at blanks and punctuation, as BERT-Base uncased does; a piece within
a word begins with "##". Piece 0 is padding, 1 stands for what no piece spells, 2 parts a pair's
sentences. The `tokenizers` library counts and merges; the same sentences give the same pieces.
"""

import os
from collections.abc import Sequence
from typing import Any

from stages.errors import InputError

PAD, UNKNOWN, SEPARATOR = SPECIAL = ("[PAD]", "[UNK]", "[SEP]")


class Pieces:
    """A vocabulary of `count` pieces at most, from training sentences."""

    def __init__(self, training: Sequence[str], count: int):
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
        self.words = sorted(found, key=found.__getitem__)
        # without those names, of which a text may hold one
        self.model = library.Tokenizer(library.models.WordPiece(found, unk_token=UNKNOWN))
        self.model.normalizer, self.model.pre_tokenizer = normal, words

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
