"""What the compilers of targets are told: of GPUs everything, as XLA would have asked the device."""

import re

import pytest

from jaxgate.ext.targets.compilers import COMPILERS, describe_gpu, topology_of
from jaxgate.ext.targets.model import CHIPS, GPUS, Target

FIELDS = {
    "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z", "clock_rate_ghz", "core_count", "cuda_compute_capability",
    "device_memory_size", "fpus_per_core", "l2_cache_size", "memory_bandwidth", "registers_per_block_limit",
    "registers_per_core_limit", "shared_memory_per_block", "shared_memory_per_block_optin", "shared_memory_per_core",
    "threads_per_block_limit", "threads_per_core_limit", "threads_per_warp",
}  # fmt: skip
"""Fields of XLA's ``GpuDeviceInfoProto`` that a device's own description has: one that is left out would be zero."""


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_is_described_whole(name):
    text = describe_gpu(GPUS[name])
    (info,) = re.findall(r"gpu_device_info \{(.*)\}\s*platform_name", text, re.DOTALL)
    found = re.findall(r"^ {10}(\w+)", info, re.MULTILINE)
    assert sorted(found) == sorted(FIELDS)
    assert not re.search(r": 0\s*$", info, re.MULTILINE)
    assert f'device_description_str: "{GPUS[name].kind}"' in text


@pytest.mark.parametrize(
    ("name", "rate"),
    [("a100", 19.5e12), ("h100", 67e12), ("h200", 67e12), ("b200", 75e12)],
    ids=lambda value: str(value),
)
def test_the_clock_is_that_of_the_data_sheet(name, rate):
    """Units, two operations each, and the clock give the rate of float32 that it prints."""
    gpu = GPUS[name]
    assert gpu.multiprocessors * gpu.cores * 2 * gpu.clock_ghz * 1e9 == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize(
    ("target", "name", "layout"),
    [
        ("tpu:v5e:2x4", "v5e:2x4", None),
        ("tpu:7x:2x2x1", "tpu7x:2x2x1", None),
        ("gpu:h200:8", "h200", "1x1x8"),
        ("gpu:h200:2x8", "h200", "1x2x8"),
    ],
)
def test_a_topology_has_the_compilers_own_name(target, name, layout):
    found, options = topology_of(Target.parse(target))
    assert (found, options.get("topology")) == (name, layout)
    assert ("target_config" in options) == target.startswith("gpu")


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("tpu:v5e:1x1", [1, 1, 1]),
        ("tpu:v5e:1x2", [1, 2, 1]),
        ("tpu:v5e:2x4", None),
        ("tpu:v4:2x2x1", None),
        ("tpu:v4:1x1x1", [1, 1, 1]),
    ],
)
def test_fewer_chips_than_a_host_usually_has_are_a_host(target, host):
    """Others are not spoken of: their topology stays what it was."""
    _, options = topology_of(Target.parse(target))
    assert options.get("chips_per_host_bounds") == host


def test_every_chip_has_a_compiler():
    """With the extra that brings it, and no device is looked for."""
    assert {chip.platform for chip in CHIPS.values()} == set(COMPILERS)
    assert {one.variables["JAX_PLATFORMS"] for one in COMPILERS.values()} == {"cpu"}
