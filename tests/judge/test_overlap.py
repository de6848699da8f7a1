"""Communication of a step, by hand: what computation hides, what is exposed, and where nothing can be told."""

import pytest

from jaxgate.ext.profile.model import Communication, Span
from jaxgate.ext.profile.operations import compare, divide, typical
from jaxgate.ext.profile.table import communication_line

US = 1_000


def span(name, begin, end, thread=0, device=0):
    """An operation, in microseconds; one whose name begins with ``all`` moves data."""
    return Span(
        thread=thread, name=name, begin_ns=begin * US, end_ns=end * US, device=device, collective=name.startswith("all")
    )


ONE = span("all-reduce", 0, 40)
STEPS = {  # spans, then microseconds of communication and those of it that are exposed
    "after the computation": ([span("dot", 0, 60), span("all-reduce", 60, 90)], 30, 30),
    "on another stream": ([span("dot", 0, 60), span("all-reduce", 70, 90, thread=1)], 20, 20),
    "beside it": ([span("dot", 0, 60), span("all-reduce", 10, 50, thread=1)], 40, 0),
    "sticking out at both ends": ([span("dot", 20, 60), span("all-reduce", 10, 90, thread=1)], 80, 40),
    "two at once count once, and hide nothing": (
        [ONE, span("all-gather", 20, 60, thread=1), span("dot", 50, 80, thread=2)],
        60,
        50,
    ),
    "each device alone, and their mean": ([ONE, span("dot", 0, 40, thread=1, device=1)], 20, 20),
    "another device hides nothing": (
        [ONE, span("dot", 0, 40, thread=1, device=0), span("dot", 0, 80, thread=2, device=1)],
        20,
        0,
    ),
    "the loop around it computes nothing": ([span("while", 0, 100), span("all-reduce", 20, 60)], 40, 40),
    "a loop beside it computes": (
        [span("all-reduce", 0, 50), span("while", 0, 100, thread=1), span("dot", 10, 20, thread=1)],
        50,
        0,
    ),
    "cut at the end of the step": ([span("all-reduce", 90, 140)], 10, 10),
    "devices that send nothing": ([span("dot", 0, 50)], 0, 0),
}


@pytest.mark.parametrize(("spans", "total", "exposed"), STEPS.values(), ids=STEPS)
def test_only_what_nothing_is_computed_beside_is_exposed(spans, total, exposed):
    """On the same device, by the innermost operation of each thread, within the step."""
    told = divide(spans, 0, 100 * US).communication
    assert (told.total_ns / US, told.exposed_ns / US) == pytest.approx((total, exposed))
    assert (told.overlap is None) is (total == 0)


def test_where_devices_cannot_be_told_apart_nothing_is_said():
    """Threads of a host work for all of its virtual devices."""
    for spans in ([], [span("all-reduce", 0, 50, device=None), span("dot", 0, 50, device=None)]):
        assert divide(spans, 0, 100 * US).communication is None


def step(exposed, device=0):
    """A step of 100 µs that moves data for 50."""
    return divide([span("dot", exposed, 90, device=device), span("all-reduce", 0, 50, 1, device)], 0, 100 * US)


def test_the_typical_step_has_the_mean_and_the_page_says_it():
    """Of the quicker half; beside that of the other side, where it is known."""
    now, then = typical([step(30), step(20)]), typical([step(10)])
    assert now.communication == Communication(total_ns=50 * US, exposed_ns=30 * US)
    table = compare(now, then, {}, side="baseline")
    assert communication_line(table) == (
        "communication takes 50 µs, 30 µs exposed (30 % of the step), 40 % beside computation; "
        "that of the baseline 50 µs, 10 µs exposed (10 % of the step), 80 % beside computation"
    )
    assert communication_line(compare(typical([divide([span("dot", 0, 9)], 0, 100 * US)]), None, {})) == (
        "communication takes no time"
    )


def test_the_page_says_nothing_where_nothing_is_known():
    table = compare(typical([step(30, device=None)]), typical([step(30)]), {}, side="baseline")
    assert (table.communication, communication_line(table)) == (None, "")
