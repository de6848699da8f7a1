"""What a compiled program asks of one device: what collectives send at least, and no failure over an estimate."""

import gzip

import pytest
from support.paths import DATA

from jaxgate.ext.targets.model import Target
from jaxgate.model.roofline import RESOURCES
from jaxgate.observe.hlo.demand import read_demand
from jaxgate.observe.hlo.parser import read_hlo

V5E, H200 = Target.parse("tpu:v5e:2x4"), Target.parse("gpu:h200:8")
ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

"""


def asked(line, target=V5E, *, argument="f32[256]", devices=8):
    """What a program of one collective asks for."""
    text = f"HloModule m, num_partitions={devices}\n\n{ADD}ENTRY %main (a: {argument}) -> {argument} {{\n"
    text += f"  %a = {argument}{{0}} parameter(0)\n  ROOT %r = {line}\n}}\n"
    return read_demand(read_hlo(text), None, target, devices)


ALL = "replica_groups={{0,1,2,3,4,5,6,7}}"


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        # Seven eighths of 1,024 bytes go out, and of an all-reduce as many come back as results.
        (f"f32[256]{{0}} all-reduce(%a), channel_id=1, {ALL}, use_global_device_ids=true, to_apply=%add", 1792),
        (f"f32[2048]{{0}} all-gather(%a), channel_id=1, {ALL}, dimensions={{0}}, use_global_device_ids=true", 7168),
        (f"f32[32]{{0}} reduce-scatter(%a), channel_id=1, {ALL}, use_global_device_ids=true, to_apply=%add", 896),
        (f"f32[256]{{0}} all-to-all(%a), channel_id=1, {ALL}, dimensions={{0}}", 896),
        ("f32[256]{0} collective-permute(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}", 1024),
        # In groups of two, one half.
        (
            "f32[256]{0} all-reduce(%a), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, "
            "use_global_device_ids=true, to_apply=%add",
            1024,
        ),
    ],
)
def test_what_a_device_sends_at_least(line, sent):
    """By the definition of each collective, whatever its algorithm."""
    found = asked(line)
    assert (found.sent_bytes, dict(found.unknown)) == (sent, {})


def test_a_collective_in_a_branch_is_not_sent_at_least():
    """A conditional may take the other branch: then nothing is sent, and that is said."""
    reduced = f"f32[256]{{0}} all-reduce(%x), channel_id=1, {ALL}, use_global_device_ids=true, to_apply=%add"
    text = f"HloModule m, num_partitions=8\n\n{ADD}"
    text += f"%sends (x: f32[256]) -> f32[256] {{\n  %x = f32[256]{{0}} parameter(0)\n  ROOT %r = {reduced}\n}}\n\n"
    text += "%keeps (y: f32[256]) -> f32[256] {\n  ROOT %y = f32[256]{0} parameter(0)\n}\n\n"
    text += "ENTRY %main (p: pred[], a: f32[256]) -> f32[256] {\n  %p = pred[] parameter(0)\n"
    text += "  %a = f32[256]{0} parameter(1)\n  ROOT %c = f32[256]{0} conditional(%p, %a, %a), "
    text += "true_computation=%sends, false_computation=%keeps\n}\n"
    found = read_demand(read_hlo(text), None, V5E, 8)
    assert found.sent_bytes == 0
    assert found.unknown["communication"] == "a collective in a branch of a conditional does not count"


def test_what_leaves_a_machine_is_unknown():
    """The network between machines is no link of a GPU; within one, and between chips of a slice, all are linked."""
    line = (
        "f32[256]{0} all-reduce(%a), channel_id=1, replica_groups={GROUPS}, use_global_device_ids=true, to_apply=%add"
    )
    two = Target.parse("gpu:h200:2x4")
    inside, across = line.replace("GROUPS", "{0,1,2,3},{4,5,6,7}"), line.replace("GROUPS", "{0,4},{1,5},{2,6},{3,7}")
    assert asked(inside, two).sent_bytes == 1536
    assert asked(across, two).unknown == {"communication": "the network between machines is not known"}
    assert asked(across, two).sent_bytes == 0
    assert not asked(across, H200).unknown
    assert not asked(across, V5E).unknown


def test_real_programs_are_read():
    """Of TPUs and GPUs: products, memory and links, loops counted, nothing left open."""
    for name, target in (("tpu-0.12/layers", V5E), ("cuda-0.12/layers", H200)):
        text = gzip.decompress((DATA / f"hlo/{name}.hlo.gz").read_bytes()).decode()
        found = read_demand(read_hlo(text), None, target, 8)
        assert sum(found.flops.values()) == 589_824
        assert found.memory_bytes > 0
        assert found.sent_bytes > 0
        assert not found.unknown


def test_a_text_that_cannot_be_read_costs_no_verdict(monkeypatch):
    """It is an estimate: whatever goes wrong is said, and nothing is raised."""
    assert set(read_demand(read_hlo("nonsense"), None, V5E, 8).unknown) == set(RESOURCES)

    def fail(_):
        raise IndexError("no such axis")

    monkeypatch.setattr("jaxgate.observe.hlo.demand.count_products", fail)
    found = asked("f32[256]{0} negate(%a)")
    assert set(found.unknown) == set(RESOURCES)
    assert "no such axis" in found.unknown["memory"]
