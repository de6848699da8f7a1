"""Targets: how they are written, how many devices they have, and what selects their baselines."""

import pytest

from jaxgate.ext.targets.model import CHIPS, Target
from jaxgate.model.machine import compiled_for


@pytest.mark.parametrize(
    ("name", "lowering", "devices", "slug"),
    [
        ("tpu:v5e:2x4", "tpu", 8, "tpu-v5e-2x4-8"),
        ("tpu:v5e:16x16", "tpu", 256, "tpu-v5e-16x16-256"),
        ("tpu:v4:2x2x1", "tpu", 4, "tpu-v4-2x2x1-4"),
        ("tpu:7x:2x2x1", "tpu", 8, "tpu-7x-2x2x1-8"),
        ("gpu:h200:8", "cuda", 8, "gpu-h200-8-8"),
        ("gpu:a100:1", "cuda", 1, "gpu-a100-1-1"),
        ("gpu:h100:32x8", "cuda", 256, "gpu-h100-32x8-256"),
    ],
)
def test_a_target_is_read_as_it_is_written(name, lowering, devices, slug):
    """A v4 is one device for both of its cores, a 7x is two; GPUs are counted in one machine, or in each of several."""
    target = Target.parse(f" {name} ")
    assert (str(target), target.platform, target.devices) == (name, name[:3], devices)
    assert target.lowering == lowering
    hardware = target.hardware(devices)
    assert (hardware.slug, hardware.target, hardware.is_virtual) == (slug, name, False)
    assert compiled_for(hardware.target) == f"compiled for {name}, never called"


@pytest.mark.parametrize(
    "name",
    [
        "v5e:2x4",
        "tpu:v5e",
        "tpu:v5e:8",
        "tpu:v5e:2x2x2",
        "tpu:v4:2x4",
        "tpu:v5e:0x4",
        "tpu:v9:2x4",
        "tpu:h200:8",
        "gpu:v5e:2x4",
        "gpu:h200:1x1x8",
        "gpu:h200:0",
        "tpu:v5e:2x4 " * 2,
    ],
)
def test_what_names_no_target_is_refused(name):
    with pytest.raises(ValueError, match="expected a target such as ") as caught:
        Target.parse(name)
    assert f"found {name!r}" in str(caught.value)
    assert all(f"{known.platform}:{chip}:" in str(caught.value) for chip, known in CHIPS.items())


@pytest.mark.parametrize(
    ("name", "nbytes"), [("tpu:v5e:2x4", 63 * 2**28), ("tpu:v4:2x2x1", 123 * 2**28), ("gpu:h200:8", 141_000_000_000)]
)
def test_the_memory_of_a_target_is_that_of_one_device(name, nbytes):
    """Of a TPU what its compiler grants, of a GPU what its data sheet says."""
    assert Target.parse(name).memory_bytes == nbytes
