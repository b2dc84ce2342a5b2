"""What the models write: tokens as text by the prepared names, as preparation decodes them, on
one line and harmless."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from stages.errors import DataError
from stages.files import write_json
from stages.sequences.data import text
from stages.sequences.reporting import texts as order_texts

DATASET = "letters"
GPT, RANDOM, DIFFUSION = (
    "sigma_gpt-left_to_right-60k",
    "sigma_gpt-random-60k",
    "diffusion-plain-60k",
)
NAMES = {"tokens": ["<unk>", "\n", "a", "b"]}
STORY = "the naïve café — ten thousand “owls” ☃ and 日本語 sang;\tthe\nend \\ of | it.\n"


def cells() -> dict:
    samplers = {
        GPT: ("left_to_right", "exact"),
        RANDOM: ("left_to_right", "own", "burst_1", "burst_5", "exact"),
        DIFFUSION: ("diffusion_1", "diffusion_16"),
    }
    return {f"{DATASET}/marginals": {"samplers": {"marginals": {}}}} | {
        f"{DATASET}/{arm}-s{seed}": {"samplers": {name: {} for name in names}}
        for arm, names in samplers.items()
        for seed in (0, 1)
    }


def tensors() -> dict[str, np.ndarray]:
    found = {"truth": np.array([[2, 3, 1], [3, 3, 3], [2, 2, 2]])}
    for name, one in cells().items():
        for sampler in one["samplers"]:
            found[f"{name.partition('/')[2]}/{sampler}/prompt/tokens"] = np.array(
                [[0, 2, 3], [2, 2, 3], [3, 2, 2]]
            )
    return found | {"map/val": np.zeros((4, 2), np.float32)}


def test_characters_read_as_preparation_decodes_them():
    coder = text.Characters([STORY])
    tokens, _ = coder.encode(STORY + "?")
    assert (
        order_texts.decode(tokens, coder.names)
        == text.decode(tokens, coder.names)
        == STORY + "<unk>"
    )


def test_pieces_read_as_the_tokenizer_decodes_them_even_where_a_character_is_split():
    pytest.importorskip("tokenizers")
    coder = text.Pieces([STORY * 3], 300)
    tokens, _ = coder.encode(STORY)
    assert any(
        "\ufffd" in coder.names["tokens"][k] for k in tokens
    )  # some character is split: names alone would lose it
    assert order_texts.decode(tokens, coder.names) == text.decode(tokens, coder.names) == STORY
    drawn = np.random.default_rng(0).integers(len(coder.names["tokens"]), size=(20, 50))
    assert [order_texts.decode(row, coder.names) for row in drawn] == [
        text.decode(row, coder.names) for row in drawn
    ]


def test_the_alphabet_of_pieces_stands_for_every_byte_once():
    assert (
        sorted(order_texts.alphabet().values()) == list(range(256))
        and len(order_texts.alphabet()) == 256
    )


@pytest.mark.parametrize(
    "names",
    [
        {"tokens": ["a"]},
        {},
        {"tokens": ["a"], "tokenizer": {"model": {"vocab": {"a": 0}}}},
        {"tokens": ["a", "☃"], "tokenizer": {"model": {"vocab": {"a": 0, "☃": 1}}}},
    ],
)
def test_a_token_without_a_name_is_refused(names):
    with pytest.raises(DataError):
        order_texts.decode(np.array([0, 1]), names)


def test_an_escaped_text_is_one_printable_line_that_says_what_it_was():
    wild = STORY + "\x00\x1b[31m\u202e\u2028\x85\udc80"
    found = order_texts.escaped(wild)
    assert found.isprintable() and len(found.splitlines()) == 1
    back, place = "", 0
    while place < len(found):
        width = (
            {"x": 4, "u": 6, "U": 10}.get(found[place + 1 : place + 2], 2)
            if found[place] == "\\"
            else 1
        )
        one = found[place : place + width]
        back = back + (one.encode().decode("unicode_escape") if width > 1 else one)
        place = place + width
    assert back == wild


def test_true_sequences_come_first_then_each_arms_own_sampler_and_bursts_of_its_first_seed():
    found = order_texts.written(tensors(), NAMES, cells(), DATASET)
    assert found[:2] == [["true", "ab\\n"], ["true", "bbb"]]
    assert [who for who, _ in found[2::2]] == [
        "marginals",
        "GPT (left to right), 60k, left_to_right",
        "σ-GPT, random, 60k, own",
        "σ-GPT, random, 60k, burst_5",
        "discrete diffusion, 60k, diffusion_16",
    ]
    assert [words for _, words in found[2:4]] == ["<unk>ab", "aab"]


def test_a_long_sample_is_cut():
    long = {"truth": np.full((1, 500), 2)}
    assert order_texts.written(long, NAMES, {}, DATASET) == [["true", "a" * order_texts.LENGTH]]


def test_the_block_in_markdown_cannot_be_left_by_a_sample():
    lines = order_texts.markdown([["true", order_texts.escaped("```\n# no title")], ["GPT", "```"]])
    inside = lines[lines.index("```text") + 1 : lines.index("```")]
    assert inside == ["true | ```\\n# no title", "GPT  | ```"] and lines.count("```") == 1
    assert all("\n" not in line for line in lines) and order_texts.markdown([]) == []


def test_the_table_of_the_page_keeps_spaces_and_is_there_for_texts_alone():
    [(title, table, _)] = order_texts.table([["true", "a   b"], ["GPT", "<b>"]], DATASET)
    assert (
        title == order_texts.TITLE
        and table.rows == (("true", "a \u00a0 b"), ("GPT", "<b>"))
        and table.words == {0, 1}
    )
    assert order_texts.table([], DATASET) == []


def test_texts_are_gathered_of_data_sets_of_text_whose_samples_were_kept(tmp_path):
    for name, names in ((DATASET, NAMES), ("language", NAMES), ("mazes", NAMES), ("numbers", {})):
        write_json(tmp_path / "prepared" / name / "sequences.json", {"names": names})
        (tmp_path / "home/evaluated" / name).mkdir(parents=True)
        save_file(
            {key: np.ascontiguousarray(one) for key, one in tensors().items()},
            tmp_path / "home/evaluated" / name / "samples.safetensors",
        )
    about = {
        DATASET: {"kind": "text"},
        "language": {"kind": "grammar"},
        "mazes": {"kind": "maze"},
        "lost": {"kind": "grammar"},
        "numbers": {"kind": "text"},
    }
    found = order_texts.gathered(tmp_path / "home", tmp_path / "prepared", cells(), about)
    true = [["true", "ab\\n"], ["true", "bbb"]]
    assert (
        set(found) == {DATASET, "language"} and found["language"] == true
    )  # which has no cells here
    assert true + found[DATASET] == order_texts.written(
        tensors(), NAMES, cells(), DATASET
    )  # others' words are not kept
