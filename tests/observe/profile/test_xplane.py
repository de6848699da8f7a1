"""Profiles of accelerators, in the shape that JAX gives them: which operations ran on which device."""

from types import SimpleNamespace

import pytest

from jaxgate.ext.profile.model import Communication, Operation
from jaxgate.ext.profile.operations import divide
from jaxgate.ext.profile.xplane import spans_of

NAMES = {
    "dot.3": Operation("attention/dot_general", "model.py:3"),
    "all-reduce-start.1": Operation("psum", "model.py:9", collective=True),
}


def plane(name, **lines):
    """A plane with lines of events: operation, begin and end in nanoseconds."""
    return SimpleNamespace(
        name=name,
        lines=[
            SimpleNamespace(
                name=line.replace("_", " "),
                events=[
                    SimpleNamespace(
                        name="gemm_fusion_dot_3" if operation == "command_buffer_1" else "kernel",
                        start_ns=begin,
                        duration_ns=end - begin,
                        stats=[("correlation_id", 1), *([("hlo_op", operation)] if operation else [])],
                    )
                    for operation, begin, end in events
                ],
            )
            for line, events in lines.items()
        ],
    )


GPUS = [
    plane(
        f"/device:GPU:{device}",
        Stream_13_Compute=[("dot.3", 0, 60), (None, 60, 70)],
        Stream_20_Comms=[("all-reduce-start.1", 40, 40 + 20 * (device + 1))],
        XLA_Modules=[("dot.3", 0, 100)],
    )
    for device in (0, 1)
]
HOST = plane("/host:CPU", python=[(None, 0, 100)], tf_XLAEigen=[("wrapped_add.2", 10, 20)])


@pytest.mark.jax_text
def test_kernels_of_a_graph_have_their_own_names():
    """CUDA graphs give each of their kernels the graph's name; the kernel's is that of its operation, with ``_`` for dots."""
    graph = plane("/device:GPU:0", Stream_14_Compute=[("command_buffer_1", 0, 60)])
    (named,) = spans_of([graph], {"gemm_fusion_dot.3": Operation("attention/dot_general", "model.py:3")})
    (unknown,) = spans_of([graph], NAMES)
    assert (named.name, unknown.name) == ("attention/dot_general", "gemm_fusion_dot_3")


def test_operations_know_their_device():
    """Those of streams and of the host's threads; lines that sum others up, and events without an operation, are none."""
    spans = list(spans_of([*GPUS, HOST], NAMES))
    assert [(span.name, span.device, span.collective) for span in spans] == [
        ("attention/dot_general", 0, False),
        ("psum", 0, True),
        ("attention/dot_general", 1, False),
        ("psum", 1, True),
        ("wrapped_add", None, False),
    ]
    assert len({span.thread for span in spans}) == len(spans)


def test_so_exposed_communication_is_known():
    """On the first device all is hidden, on the second 20 of 40 ns stick out."""
    spans = list(spans_of([HOST, *GPUS], NAMES))
    assert divide(spans, 0, 100).communication == Communication(total_ns=30, exposed_ns=10)
    assert divide(spans_of([HOST], NAMES), 0, 100).communication is None
