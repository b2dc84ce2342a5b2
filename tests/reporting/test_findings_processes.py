"""Numbers that the findings tell in words of neural processes are those of the experiment, as
rounded there (as test_findings_numbers.py of the others).
"""

from statistics import fmean

import polars as pl
import pytest
from findings import ROOT, findings, measured, values

from stages.fields.processes.claims import LESS

CURVES, NATS = "processes/mini/eq_1d", "metrics/log_likelihood"
MINUTES, GRIDDED, HALF = "processes/sample", "convcnp-plain-w16_plane", "tetnp-post-"
TEETH, PLANE = "processes/mini/sawtooth_1d_slow", "processes/mini/sawtooth_2d"
FLAT = "processes/mini/eq_2d"
TOLD = (
    ("TNP reaches {} and", "-0.417", f"{MINUTES}/eq_1d/tnp-attention-w64-s0/{NATS}"),
    ("TETNP {} (one seed each", "-0.426", f"{MINUTES}/eq_1d/tetnp-post-w64-s0/{NATS}"),
    ("32 ConvCNP {}, TNP", "-0.467", f"{MINUTES}/eq_1d/convcnp-plain-w32/{NATS}"),
    ("TNP {}, TETNP -0.506", "-0.487", f"{MINUTES}/eq_1d/tnp-attention-w32/{NATS}"),
    ("TETNP {}, pseudo-tokens", "-0.506", f"{MINUTES}/eq_1d/tetnp-post-w32/{NATS}"),
    ("pseudo-tokens {}, the linear", "-0.541", f"{MINUTES}/eq_1d/pseudo_tnp-perceiver-w32/{NATS}"),
    ("transformer {}, HyperMixNP", "-0.646", f"{MINUTES}/eq_1d/tnp-linear-w32/{NATS}"),
    ("HyperMixNP {}, CNP", "-0.940", f"{MINUTES}/eq_1d/tnp-hyper-w32/{NATS}"),
    ("CNP {}, latent", "-1.06", f"{MINUTES}/eq_1d/neural_process-conditional-w64/{NATS}"),
    ("processes {} and", "-1.21", f"{MINUTES}/eq_1d/neural_process-weighted-w64-s0/{NATS}"),
    ("and {}. That models", "-1.22", f"{MINUTES}/eq_1d/neural_process-bound-w64-s0/{NATS}"),
    ("where TETNP reaches {} and", "0.83", f"{MINUTES}/sawtooth_1d/tetnp-post-w32/{NATS}"),
    ("and ConvCNP {} (three", "0.76", f"{MINUTES}/sawtooth_1d/convcnp-plain-w32/{NATS}"),
    ("steps it reaches {}, TETNP", "0.87", f"{MINUTES}/sawtooth_1d/tnp-attention-w64/{NATS}"),
    ("TETNP {} (two seeds", "1.33", f"{MINUTES}/sawtooth_1d/tetnp-post-w64/{NATS}"),
    ("exact law {}): it", "0.44", f"{MINUTES}/periodic_1d/exact/{NATS}"),
    ("it reaches {}, ConvCNP", "-0.12", f"{MINUTES}/periodic_1d/tetnp-post-w32-s0/{NATS}"),
    ("ConvCNP {}, TNP -1", "-0.65", f"{MINUTES}/periodic_1d/convcnp-plain-w32-s0/{NATS}"),
    ("TNP {}. It alone", "-1.16", f"{MINUTES}/periodic_1d/tnp-attention-w32-s0/{NATS}"),
    ("the RBF reaches {} and", "0.78", f"{MINUTES}/sawtooth_1d/tetnp-rbf-w32/{NATS}"),
    ("the MLP {} (three", "0.83", f"{MINUTES}/sawtooth_1d/tetnp-post-w32/{NATS}"),
    ("width a TETNP reaches {}, with", "0.74", f"{MINUTES}/sawtooth_1d/{HALF}w16_h4_d8/{NATS}"),
    ("the heads {}, with", "0.92", f"{MINUTES}/sawtooth_1d/{HALF}w32_h2_d8/{NATS}"),
    ("half as wide {}, as", "0.87", f"{MINUTES}/sawtooth_1d/{HALF}w32_h4_d4/{NATS}"),
    ("budget reach {} to", "0.75", f"{MINUTES}/sawtooth_1d/{HALF}w24_h4_d16/{NATS}"),
    ("0.75 to {}. That", "0.84", f"{MINUTES}/sawtooth_1d/{HALF}w40_h4_d2/{NATS}"),
    ("diagonals** ({} and", "0.32", f"{MINUTES}/sawtooth_2d_full/{GRIDDED}/{NATS}"),
    ("and {} nats, two seeds", "0.28", f"{MINUTES}/sawtooth_2d/{GRIDDED}/{NATS}"),
    ("steps ConvCNP reaches {}, TETNP", "-0.51", f"{CURVES}/convcnp-plain-w19-s0/{NATS}"),
    ("TETNP {}, TNP -0.68", "-0.61", f"{CURVES}/tetnp-post-w32-s0/{NATS}"),
    ("TNP {}; in", "-0.68", f"{CURVES}/tnp-attention-w32-s0/{NATS}"),
    ("pseudo-tokens {}, in 3,200", "-0.73", f"{CURVES}/pseudo_tnp-perceiver-w32-s0/{NATS}"),
    ("in the points {} (other", "-0.72", f"{CURVES}/tnp-linear-w32-s0/{NATS}"),
    ("CNP {}. Trained", "-1.27", f"{CURVES}/neural_process-conditional-w64-s0/{NATS}"),
    ("(exact law {}, prior", "-0.36", f"{CURVES}/exact/{NATS}"),
    ("prior {})** in", "-1.43", f"{CURVES}/prior/{NATS}"),
    ("few teeth (bound {}, prior", "2.27", f"{TEETH}/exact/{NATS}"),
    ("2.27, prior {}) TETNP", "-0.18", f"{TEETH}/prior/{NATS}"),
    ("far from the bound, {}.", "2.27", f"{MINUTES}/sawtooth_2d/exact/{NATS}"),
    ("two seeds; the prior {}),", "-0.18", f"{MINUTES}/sawtooth_2d_full/prior/{NATS}"),
    ("TETNP reaches {}, ConvCNP 0.76", "1.06", f"{TEETH}/tetnp-post-w32-s0/{NATS}"),
    ("ConvCNP {}, TNP 0.16", "0.76", f"{TEETH}/convcnp-plain-w19-s0/{NATS}"),
    ("TNP {}** in", "0.16", f"{TEETH}/tnp-attention-w32-s0/{NATS}"),
    ("mini; exact law {}, prior", "-0.79", f"{FLAT}/exact/{NATS}"),
    ("-0.79, prior {}): after", "-1.42", f"{FLAT}/prior/{NATS}"),
    ("TETNP reaches {}, -1.06", "-1.16", f"{FLAT}/tetnp-post-w32-s0/{NATS}"),
    ("falls from {} to", "0.87", f"{PLANE}/tetnp-post-w32-s0/{NATS}"),
)


@pytest.mark.parametrize(("words", "number", "address"), TOLD)
def test_a_number_in_words_is_that_of_its_cell(words, number, address):
    assert words.format(number) in findings()
    assert f"{fmean(values(address)):.{len(number.partition('.')[2])}f}" == number


@pytest.mark.parametrize(
    ("profile", "cell", "words"),
    [
        ("mini", "eq_1d/tnp-attention-w32-s0", "in {} steps ConvCNP"),
        ("mini", "eq_1d/tetnp-post-w32-s0", "in {} steps ConvCNP"),
        ("mini", "eq_1d/convcnp-plain-w19-s0", "in {} steps ConvCNP"),
        ("mini", "eq_1d/pseudo_tnp-perceiver-w32-s0", "{} 32 pseudo-tokens"),
        ("mini", "eq_1d/tnp-linear-w32-s0", "in {} what is linear"),
        ("mini", "eq_1d/neural_process-conditional-w64-s0", "in {} CNP"),
        ("mini", "sawtooth_1d_slow/tetnp-post-w32-s0", "in as many steps ({};"),
        ("mini", "sawtooth_1d_slow/tnp-attention-w32-s0", "in as many steps ({};"),
        ("mini", "sawtooth_1d_slow/convcnp-plain-w19-s0", "in as many steps ({};"),
        ("sample", "eq_1d/tnp-attention-w64-s0", "in {} steps, TNP reaches -0.417"),
        ("sample", "eq_1d/tetnp-post-w32-s0", "in {} of width 32 ConvCNP"),
        ("sample", "sawtooth_1d/tnp-attention-w32-s0", "at the prior after {} steps, where"),
        ("sample", "sawtooth_1d/tetnp-post-w64-s0", "of width 64 after {} steps it reaches"),
    ],
)
def test_steps_in_words_are_those_of_the_cells(profile, cell, words):
    found = measured(f"reports/processes/{profile}/metrics.json")["cells"][cell]["history"]["val"]
    assert words.format(f"{found[-1][0]:,}") in findings()


def test_memory_of_many_points_in_words_is_what_was_counted_and_what_is_printed():
    rows = pl.read_csv(ROOT / "reports/processes/memory.csv")
    (held,) = rows.filter(model="tetnp-post", axes=2, contexts=5000, targets=1000)["mb"]
    printed = pl.read_csv(ROOT / "data/published/tetnp_table_6_4_1.csv")
    (theirs,) = printed.filter(model="tetnp", variant="Nc=5000;Nt=1000")["mean"]
    assert f"plane holds {held:.1f} MB, where the document prints {theirs:,.0f}" in findings()


def test_memory_in_words_is_that_of_the_claim():
    claims = {one["id"]: one for one in measured("reports/processes/mini/claims.json")}
    part = claims["P-8"]["compared"]["tetnp-post-w32 far below TETNP with all pairs at once"]
    told = f"points {part['value']:.1f} MB in tiles, {part['bar'] / LESS:.0f} MB with all pairs"
    assert told in findings()


@pytest.mark.parametrize(
    ("claim", "part", "words"),
    [
        ("P-7", "eq_1d: pseudo_tnp-perceiver-w32 within 0.1 of tetnp-post-w32, or above",
         "pseudo-tokens {} [{}, {}]"),
        ("P-7", "eq_1d: tnp-linear-w32 within 0.1 of tetnp-post-w32, or above",
         "the linear transformer {} [{}, {}]"),
        ("P-2", "eq_1d: tetnp-post-w32 within 0.1 of convcnp-plain-w19, or above",
         "TETNP lies {} nats [{}, {}] below ConvCNP"),
    ],
)  # fmt: skip
def test_how_far_models_lie_below_others_is_that_of_the_claims(claim, part, words):
    """In the experiment's README."""
    claims = {one["id"]: one for one in measured("reports/processes/mini/claims.json")}
    told = claims[claim]["compared"][part]
    value, high, low = (f"{-one:.3f}" for one in (told["value"], *told["interval"]))
    readme = " ".join((ROOT / "reports/processes/README.md").read_text("utf-8").split())
    assert words.format(*(one.replace("0.", ".") for one in (value, low, high))) in readme


@pytest.mark.parametrize(
    ("words", "number", "cell", "how"),
    [
        ("TNP falls to {}, below", "-1.62", f"{CURVES}/tnp-attention-w32-s0", "shifted"),
        ("by 45°** ({} nats)", "0.35", f"{PLANE}/tetnp-turned-w32-s0", "turned"),
        ("to {} (P-5", "-5.87", f"{PLANE}/tetnp-post-w32-s0", "turned"),
    ],
)
def test_what_is_left_in_words_is_what_was_reached_less_what_was_lost(words, number, cell, how):
    assert words.format(number) in findings()
    (had,), (lost,) = values(f"{cell}/{NATS}"), values(f"{cell}/metrics/lost_{how}")
    assert f"{had - lost:.2f}" == number
