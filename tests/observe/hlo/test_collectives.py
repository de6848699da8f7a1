"""Collectives of compiled programs: kind, bytes, groups, runs and who asked; a collective is never lost silently."""

import gzip
import json
import re

import jax
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.hlo import STORED, TARGETS
from support.paths import REPOSITORY
from support.processes import python

from jaxgate.observe.hlo.collectives import KINDS, read_collectives
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.hlo.replica_groups import axes_of, read_groups

RELEASE = ".".join(jax.__version__.split(".")[:2])
GRID = (("data", "model"), (4, 2))
ROW = (("x",), (8,))


def collectives(text):
    return read_collectives(read_hlo(text))


def described(text, mesh):
    """What a text holds, in short: kind, shape, bytes, runs, axes."""
    found = collectives(text)
    assert found.unread == ()
    return [(c.kind, c.shape, c.nbytes, c.runs.times, axes_of(c.groups, *mesh)) for c in found.found]


# Real programs

TWO = "float32[64,64] + float32[64,64]"
WEIGHTS = {"cpu": TWO, "tpu": TWO, "cuda": "float32[8192]"}
LAYERS = {
    "cpu": {
        ("all-gather", "float32[8,64]", 2048, 6, "'model'"): 2,
        ("all-gather", "float32[64,32]", 8192, 6, "'data'"): 2,
        ("all-reduce", "float32[8,64]", 2048, 6, "'model'"): 1,
        ("all-reduce", "float32[32,64]", 8192, 6, "'data'"): 1,
        ("all-reduce", "float32[]", 4, 1, "'model'"): 1,
        ("all-reduce", "float32[]", 4, 1, "'data'"): 1,
    },
    "tpu": {
        ("all-gather", "bfloat16[2,32,8]", 1024, 6, "'model'"): 2,
        ("all-gather", "bfloat16[1,64,32]", 4096, 6, "'data'"): 2,
        ("all-reduce", "float32[8,64]", 2048, 6, "'model'"): 1,
        ("all-reduce", "float32[1,32,64]", 8192, 6, "'data'"): 1,
        ("all-reduce", "float32[]", 4, 1, "'data', 'model'"): 1,
    },
    "cuda": {
        ("all-gather", "float32[8,64]", 2048, 6, "'model'"): 2,
        ("all-gather", "float32[64,32]", 8192, 6, "'data'"): 2,
        ("all-reduce", "float32[32,64]", 8192, 6, "'data'"): 1,
        ("reduce-scatter", "float32[8,32]", 2048, 6, "'model'"): 1,
        ("all-reduce", "float32[]", 4, 1, "'data', 'model'"): 1,
    },
}
EVERY = {
    "cpu": [
        ("all-gather", "float32[64,8]", 2048, 1, "'data'"),
        ("all-reduce", "float32[16,8]", 512, 1, "'data'"),
        ("all-to-all", " + ".join(["float32[4,8]"] * 4), 512, 1, "'data'"),
        ("collective-permute", "float32[16,8]", 512, 1, "'model'"),
        ("reduce-scatter", "float32[16,8]", 2048, 1, "'data'"),
    ],
    "tpu": [
        ("all-gather", "float32[4,16,8]", 2048, 1, "'data'"),
        ("all-reduce", "float32[16,8]", 512, 1, "'data'"),
        ("all-reduce", "float32[64,8]", 2048, 1, "'data'"),  # the psum_scatter
        ("all-to-all", "float32[4,4,8]", 512, 1, "'data'"),
        ("collective-permute", "float32[16,8]", 512, 1, "'model'"),
    ],
    "cuda": [
        ("all-gather", "float32[64,8]", 2048, 1, "'data'"),
        ("all-reduce", "float32[16,8]", 512, 1, "'data'"),
        ("all-to-all", "float32[16,8]", 512, 1, "'data'"),
        ("collective-permute", "float32[16,8]", 512, 1, "'model'"),
        ("reduce-scatter", "float32[16,8]", 2048, 1, "'data'"),
    ],
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The same programs, compiled on eight virtual devices of this machine in a process of their own."""
    folder = tmp_path_factory.mktemp("hlo")
    python(REPOSITORY / "tests/support/sharded.py", folder, "cpu")
    return {file.name.split(".")[0]: gzip.decompress(file.read_bytes()).decode() for file in folder.iterdir()}


@pytest.mark.parametrize(("platform", "release"), TARGETS)
def test_inserted_collectives_of_a_train_step(platform, release):
    """The partitioner's all-reduces over each axis, tuples summed; their lines are the user's products."""
    text = STORED[f"{platform}-{release}/train"]
    forward, weights = described(text, GRID)
    assert forward == ("all-reduce", "float32[8,64]", 2048, 1, "'model'")
    assert weights == ("all-reduce", WEIGHTS[platform], 32768, 1, "'data'")
    found = collectives(text)
    assert found.inserted == found.found
    assert found.found[0].line == "/home/user/sharded.py:34"


@pytest.mark.parametrize(("platform", "release"), TARGETS)
def test_inserted_collectives_of_a_scan_run_as_often_as_it(platform, release):
    """Six layers: six times, also on TPU, which prints an overlapped gather three times and no trip count."""
    found = described(STORED[f"{platform}-{release}/layers"], GRID)
    assert {each: found.count(each) for each in found} == LAYERS[platform]
    assert not any(c.runs.unknown_trips for c in collectives(STORED[f"{platform}-{release}/layers"]).found)


@pytest.mark.parametrize(("platform", "release"), TARGETS)
def test_explicit_collectives_are_known_as_such(platform, release):
    """What the user wrote is not counted as inserted, whatever XLA makes of it."""
    text = STORED[f"{platform}-{release}/every"]
    assert sorted(described(text, GRID)) == EVERY[platform]
    assert collectives(text).inserted == ()
    summed = STORED[f"{platform}-{release}/summed"]
    assert [each[3:] for each in described(summed, ROW)] == [(5, "'x'"), (1, "'x'")]
    assert collectives(summed).inserted == ()


@pytest.mark.parametrize(("platform", "release"), TARGETS)
def test_a_loop_of_unknown_length_counts_once_and_says_so(platform, release):
    """One psum in the loop, one before it, one in each branch."""
    found = collectives(STORED[f"{platform}-{release}/until"])
    assert found.unread == ()
    assert [(c.kind, c.runs.times, c.runs.unknown_trips, c.explicit) for c in found.found] == [
        ("all-reduce", 1, True, True),
        *[("all-reduce", 1, False, True)] * 3,
    ]


@pytest.mark.jax_text
@pytest.mark.parametrize("name", ["train", "layers", "every", "summed", "until"])
def test_programs_compiled_here_are_as_stored(here, name):
    """This release, on this machine, gives the collectives of the stored text."""

    def apart(text):
        found = collectives(text)
        assert found.unread == ()
        return [
            (c.kind, c.shape, c.nbytes, c.runs.times, c.runs.unknown_trips, c.groups, c.explicit) for c in found.found
        ]

    assert apart(here[name]) == apart(STORED[f"cpu-{RELEASE}/{name}"])


ORDER = [0, 2, 1, 3, 4, 6, 5, 7]
PLACED = f"""
import json
import numpy as np
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 8)
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
devices = np.array(jax.devices())[{ORDER}].reshape(2, 2, 2)
mesh = Mesh(devices, ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
x = jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(mesh, P("c", "b")))
spread = lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(("a", "b", "c")))) * 2
mapped = jax.shard_map(lambda x: jax.lax.psum(x, ("a", "c")), mesh=mesh, in_specs=P("a", ("b", "c")), out_specs=P(None, "b"))
y = jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(mesh, P("a", ("b", "c"))))
pmapped = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
print(json.dumps([
    jax.jit(spread, out_shardings=NamedSharding(mesh, P("b"))).lower(x).compile().as_text(),
    jax.jit(mapped).lower(y).compile().as_text(),
    pmapped.lower(np.ones((8, 4), np.float32)).compile().as_text(),
]))
"""


@pytest.fixture(scope="module")
def placed():
    """Programs on a mesh of three axes whose devices do not count up."""
    return json.loads(python("-W", "ignore", "-c", PLACED))


@pytest.mark.jax_text
def test_three_axes_and_transposed_spellings(placed):
    """Groups are positions in the mesh, however its devices are numbered and whatever the release writes."""
    names, sizes = ("a", "b", "c"), (2, 2, 2)
    found = collectives(placed[0])
    assert found.unread == ()
    axes = [(c.kind, axes_of(c.groups, names, sizes)) for c in found.found if c.kind == "all-gather"]
    assert axes == [("all-gather", "'b'"), ("all-gather", "'c'"), ("all-gather", "'a', 'c'")]
    (reduced,) = collectives(placed[1]).found
    assert (axes_of(reduced.groups, names, sizes), reduced.explicit) == ("'a', 'c'", True)


def test_pmap_reduces_over_all_devices(placed):
    """A psum of ``pmap`` is one explicit all-reduce of eight."""
    (reduced,) = collectives(placed[2]).found
    assert (reduced.groups, reduced.explicit, reduced.nbytes) == ((tuple(range(8)),), True, 16)


# Groups

SPELLINGS = {
    "lists": ("replica_groups={{0,1},{2,3}}", ((0, 1), (2, 3))),
    "pairs": ("source_target_pairs={{0,1},{1,0}}", ((0, 1), (1, 0))),
    "iota": ("replica_groups=[4,2]<=[8]", ((0, 1), (2, 3), (4, 5), (6, 7))),
    "iota-transposed": ("replica_groups=[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
    "iota-of-three": ("replica_groups=[4,2]<=[2,2,2]T(1,0,2)", ((0, 1), (4, 5), (2, 3), (6, 7))),
    "mesh": ("replica_groups=mesh['x'=8] {'x'}", (tuple(range(8)),)),
    "mesh-outer": ("replica_groups=mesh['a'=4,'b'=2] {'a'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
    "mesh-both": ("replica_groups=mesh['a'=4,'b'=2] {'a','b'}", (tuple(range(8)),)),
    "mesh-swapped": ("replica_groups=mesh['a'=4,'b'=2] {'b','a'}", ((0, 2, 4, 6, 1, 3, 5, 7),)),
    "mesh-placed": (
        "replica_groups=mesh['a'=2,'b'=2,'c'=2], device_ids=([2,2,2]T(2,1,0)) {'a'}",
        ((0, 1), (4, 5), (2, 3), (6, 7)),
    ),
    "mesh-listed": ("replica_groups=mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", ((3, 2), (1, 0))),
    "sub-axis-outer": ("replica_groups=mesh['x'=8] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    "sub-axis-middle": ("replica_groups=mesh['x'=8] {'x':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
    "sub-axis-inner": ("replica_groups=mesh['x'=8] {'x':(4)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
    "sub-axes": ("replica_groups=mesh['x'=8] {'x':(1)2,'x':(4)2}", ((0, 1, 4, 5), (2, 3, 6, 7))),
    "sub-axis-of-two": ("replica_groups=mesh['a'=4,'b'=2] {'a':(2)2,'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
    "all": ("replica_groups={}", (tuple(range(8)),)),
    "no-pairs": ("source_target_pairs={}", ()),
    "missing": ("dimensions={0}", None),
    "unclosed": ("replica_groups={{0,1},{2,3}", None),
    "too-few": ("replica_groups=[4,2]<=[9]", None),
    "one-number": ("replica_groups=[8]<=[8]", None),
    "no-such-order": ("replica_groups=[4,2]<=[8]T(1)", None),
    "sub-axes-overlap": ("replica_groups=mesh['x'=8] {'x':(1)4,'x':(2)2}", None),
    "sub-axes-do-not-fit": ("replica_groups=mesh['x'=12] {'x':(1)3,'x':(2)2}", None),
    "sub-axes-leave-a-rest": ("replica_groups=mesh['x'=6] {'x':(1)2,'x':(3)2}", None),
    "sub-axis-too-wide": ("replica_groups=mesh['x'=8] {'x':(4)4}", None),
    "sub-axis-of-nothing": ("replica_groups=mesh['x'=8] {'x':(0)2}", None),
    "no-such-axis": ("replica_groups=mesh['x'=8] {'y'}", None),
    "no-axis": ("replica_groups=mesh['x'=8] {}", None),
    "axis-twice": ("replica_groups=mesh['x'=8,'x'=1] {'x'}", None),
    "huge": ("replica_groups=[999999,999999]<=[999998000001]", None),
    "huge-mesh": ("replica_groups=mesh['x'=999999,'y'=999999] {'x'}", None),
    "none": ("replica_groups=[0,4]<=[0]", None),
    "future": ("replica_groups=V4(0..7)", None),
}


@pytest.mark.parametrize(("text", "groups"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_groups(text, groups):
    """Each known spelling gives its devices; what is not known is ``None``, never a guess."""
    attributes = f", channel_id=1, {text}, use_global_device_ids=true, to_apply=%add"
    assert read_groups(attributes, kind="all-reduce", replicas=1, partitions=8) == groups


@pytest.mark.parametrize(
    ("attributes", "kind", "groups"),
    [
        (", replica_groups={{0,1}}", "all-reduce", ((0, 1),)),
        (", replica_groups={}", "all-reduce", ((0, 1),)),
        (", channel_id=1, replica_groups={{0},{1}}", "all-reduce", ((0, 1, 2), (3, 4, 5))),
        (", channel_id=1, replica_groups={}", "all-gather", ((0, 1, 2, 3, 4, 5),)),
        (", channel_id=1, replica_groups={{0,2}}", "all-reduce", None),
        (", channel_id=1, replica_groups={{0,2}}", "all-to-all", ((0, 2),)),
    ],
)
def test_groups_of_replicas(attributes, kind, groups):
    """Two replicas of three partitions: what the numbers mean depends on the channel. Nobody has a million devices."""
    assert read_groups(attributes, kind=kind, replicas=2, partitions=3) == groups
    assert read_groups(attributes, kind=kind, replicas=1000, partitions=1000) is None


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        (((0, 1), (2, 3), (4, 5), (6, 7)), "'c'"),
        (((0, 4), (1, 5), (2, 6), (3, 7)), "'a'"),
        (((5, 1), (4, 0), (2, 6), (3, 7)), "'a'"),
        (((0, 1, 4, 5), (2, 3, 6, 7)), "'a', 'c'"),
        (((0, 1, 2, 3, 4, 5, 6, 7),), "'a', 'b', 'c'"),
        (((0, 1), (1, 0)), "'c'"),
        (((0, 3), (3, 0)), "'b', 'c'"),
        (((0, 1), (2, 3)), ""),
        (((0, 1, 2), (3, 4, 5), (6, 7)), ""),
        (((0, 9), (9, 0)), ""),
        ((), ""),
    ],
)
def test_axes_of_groups(groups, axes):
    """A mesh of 2×2×2 and an axis of one device, which is never named."""
    assert axes_of(groups, ("a", "b", "one", "c"), (2, 2, 1, 2)) == axes


# One line at a time

HEAD = "HloModule jit_f, num_partitions=8\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
HEAD += "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n"
GROUPS = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true"
REDUCE = f"all-reduce(%p), {GROUPS}, to_apply=%add"


def entry(*lines, before=""):
    """A program with an argument ``%p``, which it returns."""
    body = ["ENTRY %main (p: f32[8]) -> f32[8] {", "  %p = f32[8]{0} parameter(0)", *lines]
    body += ["  ROOT %out = f32[8]{0} copy(%p)", "}", ""]
    return HEAD + before + "\n".join(body)


@pytest.mark.parametrize(
    ("lines", "shape", "nbytes"),
    [
        ([f"%s = f32[8]{{0}} all-reduce-start(%p), {GROUPS}, to_apply=%add"], "float32[8]", 32),
        ([f"%s = (f32[8]{{0}}, f32[64]{{0}}) all-gather-start(%p), {GROUPS}"], "float32[64]", 256),
        ([f"%s = ((f32[8]{{0}}), f32[1]{{0}}, u32[]) reduce-scatter-start(%p), {GROUPS}"], "float32[1]", 32),
        (
            [
                f"%s = ((f32[8]{{0}}), f32[1]{{0}}, u32[]) reduce-scatter-start(%p), {GROUPS}",
                "%d = f32[1]{0} reduce-scatter-done(%s)",
            ],
            "float32[1]",
            32,
        ),
        (
            [
                "%i = s32[2]{0} constant({0, 1})",
                f"%s = f32[9]{{0}} ragged-all-to-all(%p, %p, %i, %i, %i, %i), {GROUPS}",
            ],
            "float32[9]",
            36,
        ),
        ([f"%s = f32[8]{{0}} collective-broadcast(%p), {GROUPS}"], "float32[8]", 32),
    ],
)
def test_payload(lines, shape, nbytes):
    """Operands and contexts in the result of a start do not count; pairs count once."""
    found = collectives(entry(*("  " + line for line in lines)))
    assert found.unread == ()
    (one,) = found.found
    assert (one.shape, one.nbytes, one.groups) == (shape, nbytes, (tuple(range(8)),))


def test_a_collective_wrapped_in_an_asynchronous_call_counts_once():
    """The text of another release wraps it, and names the computation where it starts and where it is done."""
    wrapped = "%wrapped (p: f32[8]) -> f32[1] {\n  %p = f32[8]{0} parameter(0)\n"
    wrapped += f'  ROOT %r = f32[1]{{0}} reduce-scatter(%p), {GROUPS}, to_apply=%add\n}}, execution_thread="main"\n\n'
    start = "  %s = ((f32[8]{0}), f32[1]{0}, u32[]) async-start(%p), calls=%wrapped"
    (one,) = collectives(entry(start, "  %d = f32[1]{0} async-done(%s), calls=%wrapped", before=wrapped)).found
    assert (one.kind, one.nbytes, one.runs.times) == ("reduce-scatter", 32, 1)


LOOP = """%cond (s: (s32[], f32[8])) -> pred[] {
  %s = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(7)
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%t), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%j, %one)
  %p = f32[8]{0} get-tuple-element(%t), index=1
  %sum = f32[8]{0} REDUCE
  ROOT %u = (s32[], f32[8]{0}) tuple(%next, %sum)
}

""".replace("REDUCE", REDUCE)
WHILE = "  %zero = s32[] constant(0)\n  %first = s32[] copy(%zero)\n  %w = (s32[], f32[8]{0}) tuple(%first, %p)\n"
WHILE += "  %loop = (s32[], f32[8]{0}) while(%w), condition=%cond, body=%body"


@pytest.mark.parametrize(
    ("old", "new", "times", "unknown"),
    [
        ("", "", 7, False),
        ("add(%j, %one)", "add(%one, %j)", 7, False),
        ("constant(7)", "constant(-7)", 0, False),
        ("constant(7)", "parameter(1)", 1, True),
        ("constant(1)", "constant(2)", 1, True),
        ("constant(0)", "constant(1)", 1, True),
        ("direction=LT", "direction=NE", 1, True),
        ("direction=LT", 'direction=LT, metadata={op_name="row index=2"}', 7, False),
        ("add(%j, %one)", "add(%one, %one)", 1, True),
        ("next = s32[] add", "next = s32[] multiply", 1, True),
        ("(%s), index=0", "(%s), index=1", 1, True),
        ("tuple(%next, %sum)", "tuple(%one, %sum)", 1, True),
        ("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"5"}}', 5, False),
        ("compare(%i, %n)", "compare(%n, %i)", 1, True),
        ("copy(%zero)", "negate(%zero)", 1, True),
    ],
)
def test_trip_counts(old, new, times, unknown):
    """XLA's own figure, or a counter from 0 in steps of 1 below a constant; anything else is unknown."""
    text = entry(WHILE, before=LOOP)
    found = collectives(text.replace(old, new) if old else text)
    assert [(c.runs.times, c.runs.unknown_trips) for c in found.found] == [(times, unknown)]


def test_nested_loops_and_calls_multiply():
    """Four calls from a loop of three, and one more in each asking of its condition."""
    inner = (
        f"%inner (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  ROOT %r = f32[8]{{0}} {REDUCE}\n}}\n\n"
    )
    call = "call(%p), to_apply=%inner"
    inner += "%body (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
    inner += "".join(f"  %c.{n} = f32[8]{{0}} {call}\n" for n in range(3)) + f"  ROOT %c = f32[8]{{0}} {call}\n}}\n\n"
    inner += f"%cond (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  ROOT %c = f32[8]{{0}} {call}\n}}\n\n"
    loop = '  %w = f32[8]{0} while(%p), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"3"}}'
    (one,) = collectives(entry(loop, before=inner)).found
    assert one.runs.times == 3 * 4 + (3 + 1)


@pytest.mark.parametrize(
    ("op_name", "explicit"),
    [
        ("jit(f)/shard_map/psum", True),
        ("jit(f)/shard_map/psum_invariant.3", True),
        ("jit(f)/transpose(jvp(shard_map))/all_gather_start", True),
        ("jit(f)/shard_map/(psum:while/body/psum)", True),
        ("jit(f)/shard_map/psum;jit(f)/shard_map/pmax", True),
        ("jit(f)/shard_map/(psum:while/body/mul)", False),
        ("jit(f)/psum;jit(f)/dot_general", False),
        ("jit(f)/psum/dot_general", False),
        ("jit(psum)/reduce_sum", False),
        ("psum", False),
        ("", False),
    ],
)
def test_who_wrote_a_collective(op_name, explicit):
    """The last part of the name decides; where several were merged, all of them; an argument's name is no primitive."""
    line = f'  %r = f32[8]{{0}} {REDUCE}SIGNED, metadata={{op_name="{op_name}"}}'
    (one,) = collectives(entry(line.replace("SIGNED", ""))).found
    assert one.explicit is explicit
    signed = line.replace("SIGNED", ', frontend_attributes={is_spmd_generated="true"}')
    assert len(collectives(entry(signed)).inserted) == 1  # the partitioner made it, whatever its name


UNKNOWN = {
    "future-operation": ("  %r = f32[8]{0} all-foo(%p), replica_groups=[1,8]<=[8]", "all-foo"),
    "future-collective": ("  %r = f32[8]{0} collective-foo-start(%p)", "collective-foo"),
    "future-groups": (f"  %r = f32[8]{{0}} {REDUCE.replace('[1,8]<=[8]', 'V4(8)')}", "groups not understood"),
    "send": ("  %r = (f32[8]{0}, u32[]) send(%p), channel_id=1", "send"),
    "foreign-kernel": ('  %r = f32[8]{0} custom-call(%p), custom_call_target="my_AllReduce_v2"', "my_AllReduce"),
    "lost-operand": ("  %r = f32[8]{0} copy(%q)", "%q is read by %r and defined nowhere"),
    "operand-of-it-lost": (f"  %r = f32[8]{{0}} {REDUCE.replace('%p', '%q')}", "operands unknown: all-reduce %r"),
    "no-operand": (f"  %r = f32[8]{{0}} {REDUCE.replace('%p', '')}", "operands unknown: all-reduce %r"),
    "lost-computation": ("  %r = f32[8]{0} fusion(%p), calls=%gone", "fusion %r calls %gone, which is not there"),
    "foreign-groups": (f'  %r = f32[8]{{0}} custom-call(%p), {GROUPS}, custom_call_target="x"', "custom-call"),
    "no-result": (
        "}\n\n%f (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n}\n\n%g (p: f32[8]) -> f32[8] {",
        "%f has not",
    ),
    "unread-line": ("  %r = q99[8] all-reduce(%p)", "%r = q99[8] all-reduce(%p)"),
    "recursion": ("  %r = f32[8]{0} call(%p), to_apply=%main", "called by what it calls"),
}


@pytest.mark.parametrize(("line", "said"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_be_a_collective_is_said(line, said):
    """An operation, spelling or hole that may hide a collective is unread, so that nobody takes the rest for all."""
    found = collectives(entry(line))
    assert any(said in unread for unread in found.unread)


@pytest.mark.parametrize(
    "line",
    [
        "  %r = (f32[8]{0}, u32[]) send(%p), channel_id=1, is_host_transfer=true",
        '  %r = f32[8]{0} custom-call(%p), custom_call_target="lapack_spotrf"',
        "  %r = f32[8]{0} frobnicate(%p)",
        "  %r = q99[8] frobnicate(%p)\n  %s = f32[8]{0} copy(%r)",
        "  %r = f32[8]{0} partition-id()",
    ],
)
def test_what_is_no_collective_is_no_matter(line):
    """Unknown operations and lines that say nothing of collectives leave their number known."""
    found = collectives(entry(line))
    assert (found.found, found.unread) == ((), ())


def test_a_collective_that_nothing_runs_is_said():
    """A computation that is not reached from the entry is not counted, and not forgotten."""
    lost = f"%lost (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  ROOT %r = f32[8]{{0}} {REDUCE}\n}}\n\n"
    found = collectives(entry(before=lost))
    assert found.found == ()
    assert found.unread == ("not reached from the entry: all-reduce %r",)


# Damage

APPLIED = re.compile(r" (" + "|".join(sorted(KINDS)) + r")(?:-start)?\(%")


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_damage_never_loses_a_collective_silently(data):
    """Whatever range is cut out of a real text or garbled: each collective that still stands there is found or said.

    TPU text repeats collectives, so that their number says nothing; it is read all the same.
    """
    name = data.draw(st.sampled_from(sorted(STORED)))
    text = STORED[name]
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, min(start + data.draw(st.sampled_from([1, 3, 30, 300, 3000])), len(text))))
    noise = data.draw(st.text("ab01%(){}[]=,\"' \n", max_size=end - start) | st.just(""))
    found = collectives(text[:start] + noise + text[end:])
    standing = len(APPLIED.findall(text[:start])) + len(APPLIED.findall(text[end:]))
    assert found.unread or len(found.found) >= standing or name.startswith("tpu")
    assert found.unread or len(found.found) == len(collectives(text).found)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.text(st.sampled_from("all-reduce(%){}[]=,1 \n"), max_size=200) | st.text(max_size=60))
@example("")
@example("\n")
@example("HloModule jit_f")
@example("}")
@example("ENTRY")
def test_any_text_is_taken(text):
    """No text raises, and without a program collectives are unknown, not none."""
    assert collectives(text).unread != ()
