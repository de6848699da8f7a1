"""One accelerator for each worker, counted without JAX."""

from dataclasses import replace

import pytest

from jaxgate.plugin.xdist import devices
from jaxgate.plugin.xdist.devices import KINDS, found, pin, share_of

CUDA = ["jax", "jax-cuda13-plugin"]


def kinds(**counts):
    """The kinds, with so many devices of each."""

    def count(variable):
        number = counts.get(variable.partition("_")[0].lower(), 0)
        return lambda: [str(device) for device in range(number)]

    return tuple(replace(kind, count=count(kind.variables[0])) for kind in KINDS)


def look(environ=None, *, installed=CUDA, **counts):
    """What is found on a machine."""
    return found(environ or {}, installed=lambda: installed, kinds=kinds(**counts))


def test_each_gpu_is_one():
    assert look(cuda=2) == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}]
    assert look(hip=1, installed=["jax_rocm7_plugin"]) == [{"HIP_VISIBLE_DEVICES": "0"}]


def test_a_tpu_process_is_told_that_it_is_alone():
    [first, _] = look(tpu=2, installed=["libtpu"])
    assert first == {
        "TPU_VISIBLE_CHIPS": "0", "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_PROCESS_BOUNDS": "1,1,1",
    }  # fmt: skip


def test_those_that_may_be_used_are_divided():
    """A launcher left this process two of eight, by number or by name."""
    environ = {"CUDA_VISIBLE_DEVICES": "3, MIG-5"}
    assert [each["CUDA_VISIBLE_DEVICES"] for each in look(environ, cuda=8)] == ["3", "MIG-5"]


@pytest.mark.parametrize(
    ("environ", "installed"),
    [
        ({"JAX_PLATFORMS": "cpu"}, CUDA),
        ({"JAX_PLATFORMS": "tpu"}, CUDA),
        ({}, ["jax"]),
        ({"JAXGATE_PIN_WORKERS": "0"}, CUDA),
    ],
)
def test_what_jax_would_not_use_is_not_counted(environ, installed):
    """Another platform, no plugin for it, or workers that see to it themselves."""
    assert look(environ, installed=installed, cuda=4) == []


def test_named_platforms_are_looked_for():
    assert len(look({"JAX_PLATFORMS": "cuda,cpu"}, cuda=4)) == 4


def test_a_worker_too_many_has_none_and_says_so():
    devices = look(cuda=2)
    assert share_of(1, devices).variables == {"CUDA_VISIBLE_DEVICES": "1"}
    assert "run with -n 2" in share_of(2, devices).why_none
    assert not share_of(5, []).why_none


def test_chips_are_counted_from_their_files(tmp_path):
    """Of both drivers; and GPUs of AMD from the kernel's list, where processors stand beside them."""
    (tmp_path / "vfio").mkdir()
    for name in ("vfio/0", "vfio/1", "vfio/vfio"):
        (tmp_path / name).write_text("")
    assert devices._tpu(tmp_path) == ["0", "1"]
    (tmp_path / "accel0").write_text("")
    assert devices._tpu(tmp_path) == ["0"]
    for node, count in enumerate((0, 256, 256)):
        folder = tmp_path / "nodes" / str(node)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(f"cpu_cores_count 1\nsimd_count {count}\nmem_banks_count 1\n")
    assert devices._amd(tmp_path / "nodes") == ["0", "1"]


def test_a_machine_without_the_tool_has_none(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert devices._nvidia() == []


def test_auto_is_one_worker_for_each(monkeypatch, tmp_path):
    from jaxgate.plugin import hooks

    (tmp_path / "libtpu-1.dist-info").mkdir()
    (tmp_path / "libtpu-1.dist-info/METADATA").write_text("Name: libtpu\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    monkeypatch.setenv("TPU_VISIBLE_CHIPS", "0,1,2")
    assert hooks.pytest_xdist_auto_num_workers() == 3
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert hooks.pytest_xdist_auto_num_workers() is None


def test_a_pinned_worker_sees_one(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pin({"CUDA_VISIBLE_DEVICES": "1"})
    import os

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
