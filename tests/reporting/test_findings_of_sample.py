"""Numbers in reports/FINDINGS.md of what sample trains of pairs, pictures and mazes, as
test_findings_numbers.py has those of the rest."""

import re
from statistics import fmean, stdev

import pytest

from stages.audit.history import git
from tests.reporting.test_findings_numbers import RIGHT, ROOT, TALLY, findings, measured, values

LARGE = "token_mixing/sample/pictures_12_16/self_attention-pre_norm-w64-s0"
LONG, DREW = "token_mixing/sample/sentence_pairs_48000", "prompt/metrics"
MAZES, GROWN = "any_order/sample/mazes", "sigma_gpt-curriculum-134k-s0"
GRIDS, SCATTERED = "on_off_grid/sample/britain/grid_tnp-mhca", "on_off_grid/mini/globe/exact_on"
ANY = f"{MAZES}_large/sigma_gpt-random-134k-s0"
STEP = "any_order/sample/step_100"
STEPS, BLURRED = f"{STEP}/sigma_gpt-random-58k-s0", f"{STEP}/diffusion-plain-58k-s0"
DENSE, KNOTS = "wind_nowcast/sample/sky_44_days", "metrics/rmse_component_kn"
KELVIN, NATS = "metrics/rmse", "metrics/log_likelihood"
TOLD = (
    ("HyperMixer labels {} %, attention", "98.5", f"{LONG}/hypermixing-tied-w32/{RIGHT}"),
    ("%, attention {}** (", "96.1", f"{LONG}/self_attention-post_norm-w32/{RIGHT}"),
    ("vector {}, feature", "86.1", f"{LONG}/weight_vector-post_norm-w32/{RIGHT}"),
    ("mixing alone {}, about", "49.2", f"{LONG}/unmixed-post_norm-w32/{RIGHT}"),
    ("it labels {} % without", "98.1", f"{LONG}/hypermixing-rezero_none-w32/{RIGHT}"),
    ("without and {} with layer", "95.7", f"{LONG}/hypermixing-rezero_layer-w32/{RIGHT}"),
    ("parallel {} and", "99.5", f"{LONG}/hypermixing-parallel_none-w32/{RIGHT}"),
    ("99.5 and {}, pre", "99.7", f"{LONG}/hypermixing-parallel_layer-w32/{RIGHT}"),
    ("pre-norm {} and", "99.6", f"{LONG}/hypermixing-pre_norm_none-w32/{RIGHT}"),
    ("99.6 and {}. So", "98.0", f"{LONG}/hypermixing-pre_norm_layer-w32/{RIGHT}"),
    ("ReZero labels {} %. H-7", "90.5", f"{LONG}/self_attention-rezero-w32/{RIGHT}"),
    ("one seed labels {} %", "99.9", f"{LONG}/hypermixing-token_only-w32-s0/{RIGHT}"),
    ("the other {}.", "84.4", f"{LONG}/hypermixing-token_only-w32-s1/{RIGHT}"),
    (
        "it solves {} %, at a",
        "85.5",
        f"{MAZES}_large/{GROWN}/samplers/left_to_right/{DREW}/correct",
    ),
    ("perplexity of {} (GPT", "1.015", f"{MAZES}_large/{GROWN}/metrics/perplexity_left_to_right"),
    ("order it solves {} %, where", "30.0", f"{MAZES}_large/{GROWN}/samplers/own/{DREW}/correct"),
    ("order {} % [78, 87] after", "82.5", f"{ANY}/samplers/own/{DREW}/correct"),
    ("bursts {} % with 1 order", "78.0", f"{ANY}/samplers/burst_1/{DREW}/correct"),
    ("passes), {} with 5 (4.1)", "74.5", f"{ANY}/samplers/burst_5/{DREW}/correct"),
    ("(4.1), {} with 20", "68.0", f"{ANY}/samplers/burst_20/{DREW}/correct"),
    ("exact bursts {} %", "87.0", f"{ANY}/samplers/exact/{DREW}/correct"),
    ("solve 95.0, {} and", "92.5", f"{ANY}/samplers/greedy/{DREW}/correct"),
    ("at {} nats a token (the", "0.0540", f"{STEPS}/metrics/nats"),
    ("12 x 16 meet {} %", "56.1", f"{LARGE}/metrics/satisfied"),
    ("steps, {} % of those", "26.1", f"{LARGE}/metrics/satisfied_other"),
    ("the cells alone errs by {} K", "2.80", f"{SCATTERED}/{KELVIN}"),
    ("wrong index errs by {} K", "1.26", f"{GRIDS}_published-britain-s0/{KELVIN}"),
    ("with the right one by {} K", "1.18", f"{GRIDS}-britain/{KELVIN}"),
    ("without the grid by {} K", "1.18", f"{GRIDS}_off-britain-s0/{KELVIN}"),
    ("target they reach {},", "-0.880", f"{GRIDS}_published-britain-s0/{NATS}"),
    ("-0.880, {} and", "-0.699", f"{GRIDS}-britain/{NATS}"),
    ("-0.699 and {}.", "-0.778", f"{GRIDS}_off-britain-s0/{NATS}"),
    ("over three seeds it errs by {} kn", "12.7", f"{DENSE}/msa-shared-20k/{KNOTS}"),
    (
        "its context shuffled by {}, CNP",
        "15.9",
        f"{DENSE}/msa-shared-20k/metrics/rmse_permuted_component_kn",
    ),
    ("CNP by {} either way", "16.1", f"{DENSE}/cnp-shared-20k/{KNOTS}"),
    ("kernel averaging {} kn, persistence", "10.1", f"{DENSE}/kernel/{KNOTS}"),
    ("kn, persistence {}. So", "11.6", f"{DENSE}/persistence/{KNOTS}"),
    ("errs least of all, {} kn", "9.9", f"{DENSE}/gen-shared_wind_small-20k-s0/{KNOTS}"),
    ("and TFS, {}, does not", "12.5", f"{DENSE}/tfs-shared-20k-s0/{KNOTS}"),
    ("drawn meets {} %", "88.4", f"pictures/sample/pictures_12_16/{TALLY}-w64/metrics/satisfied"),
)


def test_how_far_kernel_averaging_stays_ahead_is_that_of_the_claim():
    claims = measured("reports/wind_nowcast/sample/claims.json")
    (one,) = (one for one in claims if (one["id"], one["dataset"]) == ("I-5", "sky_44_days"))
    part = one["compared"]["msa-shared-20k < kernel at 30 min"]
    assert one["verdict"] == part["verdict"] == "fails"
    told = f"kernel averaging errs {-part['difference_kn']:.1f} kn less than MSA 30 minutes ahead"
    assert told in findings()


@pytest.mark.parametrize(("words", "number", "address"), TOLD)
def test_a_number_in_words_is_that_of_its_cells(words, number, address):
    assert words.format(number) in findings()
    assert f"{fmean(values(address)):.{len(number.partition('.')[2])}f}" == number


def test_how_much_more_a_plain_transformer_meets_is_that_of_the_claim():
    """In findings and in the READMEs of the two experiments that tell it."""
    ratios = {}
    for profile, home in (("mini", "pictures"), ("sample", "token_mixing")):
        claims = measured(f"reports/{home}/{profile}/claims.json")
        (one,) = (one for one in claims if one["id"] == "H-10")
        ((arm, part),) = one["compared"].items()
        assert arm.startswith("self_attention-pre_norm") and one["verdict"] == "undecided"
        low, high = part["interval"]
        ratios[profile] = f"{part['value']:.2f}", f"[{low:.2f}, {high:.2f}]"
    value, ends = ratios["sample"]
    assert f"of others: {value} times as many {ends}, so that H-10 is undecided" in findings()
    readme = {
        name: re.sub(r"\s+", " ", (ROOT / f"reports/{name}/README.md").read_text("utf-8"))
        for name in ("token_mixing", "pictures")
    }
    assert f"H-10 alone, {value} {ends}, which is undecided" in readme["token_mixing"]
    assert f"meets {value} times as many {ends}: undecided" in readme["pictures"]
    (mini,) = measured("reports/pictures/mini/claims.json")
    low, high = mini["interval"]
    told = f"meets {ratios['mini'][0]} times as many of its own statements as of others"
    assert f"{told} [{low:.2f}, {high:.2f}], where three are asked" in readme["pictures"]


def test_what_is_said_of_the_step_law_of_100_stands_in_the_table():
    table = git(ROOT, "show", "HEAD:reports/any_order/sample/table.md")
    part = table.split("\n## step_100\n")[1].split("\n## ")[0]
    costs = part.split("What each sampler costs")[1]
    rows = {
        (name, sampler): [cell.split()[0] for cell in row.split("|") if cell.strip()]
        for name, sampler, row in re.findall(
            r"^\| (σ-GPT|discrete diffusion), [^|]* \| 1 \| (\w+) \|(.*)$", costs, re.MULTILINE
        )
    }
    told = re.sub(r"\s+", " ", findings())
    for name, sampler, words in (
        ("σ-GPT", "own", "in random order: {} % of its samples are valid"),
        ("σ-GPT", "left_to_right", "of those from left to right {} %"),
        ("σ-GPT", "burst_5", "but {} % of them are valid"),
        ("σ-GPT", "exact", "exact bursts {} % in 4.78"),
        ("discrete diffusion", "diffusion_16", "Diffusion reaches {} % with 16 passes"),
        ("discrete diffusion", "diffusion_4", "with 16 passes, {} with 4"),
    ):
        assert words.format(rows[name, sampler][-1]) in told, (name, sampler)
    passes, fewest, *_ = rows["σ-GPT", "burst_5"]
    assert f"Its bursts take {passes} passes with 5 orders, of {fewest} at best" in told
    assert f"in {rows['σ-GPT', 'exact'][0]}. Diffusion" in told


def test_a_spread_in_words_is_that_over_seeds():
    assert f"(three seeds, ± {stdev(values(f'{GRIDS}-britain/{KELVIN}')):.3f})" in findings()


def test_what_is_said_of_diffusions_variants_stands_in_the_table():
    """In percent of mazes copied, in findings and in the experiment's README."""
    table = git(ROOT, "show", "HEAD:reports/any_order/sample/table.md")
    rows = re.findall(r"^\| (discrete diffusion[^|]*) \|(.*)$", table, re.MULTILINE)
    copied = {}
    for name, row in rows:  # of two sizes of maze: the small one's stands first
        copied.setdefault(name, row.split("|")[5].strip())
    plain, two = copied["discrete diffusion, 134k"], copied["discrete diffusion, 134k two"]
    fast, loud, prompted, small = (
        copied[f"discrete diffusion ({name}), 134k"]
        for name in ("fast clock", "loud clock", "prompted", "quiet")
    )
    assert copied["discrete diffusion, 130k"] == copied["discrete diffusion (former), 130k"] == "0"
    assert f"the grid it copies {plain} % of the mazes, with sinusoids none" in findings()
    lost = float(plain) - min(map(float, (fast, loud, prompted, small, two)))
    assert f"cost at most {lost:.1f} points" in findings()
    readme = re.sub(r"\s+", " ", (ROOT / "reports/any_order/README.md").read_text("utf-8"))
    told = (
        f"the plain one copies {plain} % of the mazes, with a fast clock {fast}, a loud one {loud},"
        f" small embeddings {small}, two wider heads {two}, extra prompts {prompted};"
    )
    assert told in readme
