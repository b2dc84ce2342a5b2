"""Counts of parameters that the documents and the authors' public code give for the models of
chapter 3."""

import pytest

from stages.errors import InputError
from stages.fields.models import build

WIND, COPIES = (3, 2, 2), (2, 1, 1)  # position axes, values read, values predicted


def count(name, arm, size, dimensions=WIND):
    return sum(parameter.numel() for parameter in build(name, arm, size, *dimensions).parameters())


@pytest.mark.parametrize(
    "encoder,counts", [("shared", (6594, 25474, 100098)), ("traditional", (7746, 29826, 116994))]
)
def test_cnp_on_wind(encoder, counts):
    assert (
        tuple(count("cnp", {"encoder": encoder}, {"width": width}) for width in (32, 64, 128))
        == counts
    )


@pytest.mark.parametrize("encoder", ["shared", "traditional"])
@pytest.mark.parametrize(
    "size,parameters", [((12, 2, 2, 1), 5582), ((24, 2, 2, 1), 20954), ((32, 8, 6, 3), 96482)]
)
def test_tfs_on_wind(encoder, size, parameters):
    keys = ("width", "heads", "encoder_layers", "decoder_layers")
    assert count("tfs", {"encoder": encoder}, dict(zip(keys, size, strict=True))) == parameters


@pytest.mark.parametrize(
    "width,layers,parameters", [(64, 2, 4611), (128, 2, 17411), (256, 3, 133379)]
)
def test_kernel_averaging_with_a_network_on_wind(width, layers, parameters):
    assert count("kernel_mlp", {}, {"width": width, "layers": layers}) == parameters


@pytest.mark.parametrize("encoder", ["shared", "traditional"])
@pytest.mark.parametrize(
    "size,parameters", [((12, 36, 3), 4862), ((24, 72, 3), 18362), ((32, 96, 9), 83042)]
)
def test_hypermixer_weighs_what_msa_weighs_to_two_percent(encoder, size, parameters):
    width, hidden, layers = size
    mine = count(
        "hypermixer", {"encoder": encoder}, {"width": width, "hidden": hidden, "layers": layers}
    )
    msa = count("msa", {"encoder": encoder}, {"width": width, "heads": 2, "layers": layers})
    assert mine == parameters and abs(mine / msa - 1) < 0.02


def test_the_models_of_the_failure_modes():
    size = {"width": 32, "heads": 2, "layers": 4}
    assert count("msa", {"encoder": "traditional", "block": "tied"}, size, COPIES) == 12001
    assert count("perceiver", {"encoder": "traditional", "latents": 49}, size, COPIES) == 12128


@pytest.mark.parametrize(
    "name,arguments,word",
    [
        ("cnp", {"conditioning": "near"}, "conditioning"),
        ("tfs", {"encoder_layers": 0}, "encoder_layers"),
        ("msa", {"block": "knotted"}, "block"),
        ("perceiver", {"latents": 0}, "latents"),
        ("hypermixer", {"hidden": 35, "heads": 2}, "hidden 35 is not a multiple"),
        ("hypermixer", {"tied": 2}, "tied"),
        ("perceiver", {"width": 33}, "width 33 is not a multiple"),
        ("kernel_mlp", {"head": "mean"}, "head"),
    ],
)
def test_arguments_that_do_not_fit_are_named(name, arguments, word):
    with pytest.raises(InputError, match=word):
        build(name, arguments)


def test_kernel_averaging_predicts_what_it_reads():
    with pytest.raises(InputError, match="cannot predict 1"):
        build("kernel_mlp", {}, {}, *(2, 3, 1))


@pytest.mark.parametrize("name", ["cnp", "tfs", "perceiver", "hypermixer", "msa"])
def test_networks_predict_other_values_than_they_read(name):
    assert build(name, {}, {}, 2, 3, 1).readout[-1].out_features == 1
