"""Curves, bars and rates: which are drawn, with which numbers, and that each has them as a table, too."""

from dataclasses import replace

import pytest

from ci.page.samples import sample_run
from jaxgate.ext.page.blocks import Chart, Table
from jaxgate.ext.page.curves import chart_sections
from jaxgate.ext.page.drawing import Point, line_chart, strip_chart
from jaxgate.model.computation import Amount
from jaxgate.model.outcome import Point as Devices
from jaxgate.model.outcome import Scaling

PLAIN = sample_run(1).cases[0]


def case(name, now, reference=None, **changes):
    """A case with these figures alone."""
    return replace(
        PLAIN, case=name, figures=replace(PLAIN.figures, now=now, stored={}, reference=reference or {}), **changes
    )


def run_of(*cases, **changes):
    """A run of these cases."""
    return replace(sample_run(1), cases=cases, **{"scaling": ()} | changes)


def parts(run, key):
    """Title, charts and table of each group of a section; nothing if there is no such section."""
    for section in chart_sections([run]):
        if section.key == key:
            return [
                (
                    fold.title,
                    [block for block in fold.blocks if isinstance(block, Chart)],
                    next(block for block in fold.blocks if isinstance(block, Table)),
                )
                for fold in section.blocks
            ]
    return []


def points(chart):
    """What each point of a chart says."""
    return [words for line in chart.lines for *_, words in line.points]


def texts(table):
    """The table as it is read."""
    return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]


LENGTHS = run_of(
    case("scan/rnn-over-32-steps-scan-vs-loop", {"compile_ns": 88e6, "stablehlo_ops": 12}, {"compile_ns": 654e6, "stablehlo_ops": 288}),
    case("scan/rnn-over-256-steps-scan-vs-loop", {"compile_ns": 90e6, "stablehlo_ops": 12}, {"compile_ns": 6.1e9, "stablehlo_ops": 2304}),
    case("scan/other", {"compile_ns": 1e6}),
)  # fmt: skip


def test_compile_time_is_drawn_over_the_length():
    """Of the scan and of the loop; in words and in a table, too."""
    ((title, (compile_time, operations), table),) = parts(LENGTHS, "curves")
    assert title == "scan/rnn-over-N-steps-scan-vs-loop on cpu-amd-epyc-8"
    assert points(compile_time) == [
        "now, 32 steps: 88 ms", "now, 256 steps: 90 ms",
        "reference: loop, 32 steps: 654 ms", "reference: loop, 256 steps: 6.1 s",
    ]  # fmt: skip
    assert "reference: loop from 654 ms at 32 steps to 6.1 s at 256 steps" in compile_time.label
    assert operations.title == "Operations of the program"
    assert [column.title for column in table.columns][1:3] == ["Compile time", "Compile time, reference: loop"]
    assert texts(table) == [
        ["32 steps", "88 ms", "654 ms", "12", "288"], ["256 steps", "90 ms", "6.1 s", "12", "2,304"],
    ]  # fmt: skip


def test_what_is_the_same_everywhere_is_not_drawn():
    flat = [
        case(f"a/step-{n}-deep", {"temp_bytes": 100, "run_ns": n} if n == 2 else {"temp_bytes": 101}) for n in (2, 4)
    ]
    assert parts(run_of(*flat), "curves") == []


def test_hardware_is_not_mixed():
    one, other = LENGTHS.cases[:2]
    assert parts(run_of(one, replace(other, hardware="gpu-h200-1")), "curves") == []


def test_layouts_of_a_mesh_are_bars():
    """Collectives and their bytes below each other, each bar as long as its share of the longest."""
    layouts = {"batch-on-8": (3, 100_000), "fsdp-on-8": (9, 300_000), "hybrid-on-2x4": (12, 150_000)}
    cases = [
        case(f"pjit/mlp-train-step-{name}-vs-gathered", {"collectives": count, "collective_bytes": size})
        for name, (count, size) in layouts.items()
    ]
    ((_, _, table),) = parts(run_of(*cases), "variants")
    assert [column.title for column in table.columns] == ["case", "Collectives", "Bytes of collectives"]
    assert [(row[0], row[1].text, row[1].bar) for row in table.rows] == [
        ("batch-on-8", "3", 0.25), ("fsdp-on-8", "9", 0.75), ("hybrid-on-2x4", "12", 1.0),
    ]  # fmt: skip


def test_bandwidth_is_that_of_the_bus():
    """Bytes times the factor, by the time of a call; the curves of a family in one chart."""
    cases = [
        case(
            f"pmap/psum-of-{size}-KiB-by-{how}", {}, run_ns=1e6, amount=Amount(count=size * 1024, unit="B", bus_factor=1.75)
        )
        for size in (4, 64)
        for how in ("pmap", "jit")
    ]  # fmt: skip
    ((_, (chart,), table),) = parts(run_of(*cases), "bandwidth")
    assert points(chart) == [
        f"psum-of-N-by-{how}, {size}: {rate}"
        for how in ("pmap", "jit")
        for size, rate in (("4.1 kB", "7.17 MB/s"), ("65.5 kB", "115 MB/s"))
    ]
    assert texts(table)[0][1:] == ["4.1 kB", "7.17 MB/s"]


def test_what_was_not_timed_has_no_bandwidth():
    cases = [
        case(f"pmap/psum-of-{n}-KiB", {}, run_ns=None, amount=Amount(count=n, unit="B", bus_factor=1)) for n in (4, 64)
    ]
    assert parts(run_of(*cases), "bandwidth") == []


def test_scaling_has_the_line_of_the_fewest_devices():
    """Beside what was measured; the efficiency stands in the table."""
    series = Scaling(
        series="weak",
        unit="samples",
        points=(Devices(devices=2, per_second=200.0, efficiency=1.0), Devices(devices=8, per_second=600.0, efficiency=0.75)),
    )  # fmt: skip
    ((_, (chart,), table),) = parts(run_of(PLAIN, scaling=(series,)), "scaling")
    assert points(chart) == [
        "measured, 2: 200 samples/s", "measured, 8: 600 samples/s",
        "as on the fewest devices, 2: 200 samples/s", "as on the fewest devices, 8: 800 samples/s",
    ]  # fmt: skip
    assert texts(table)[1] == ["8", "600 samples/s", "75 %"]


def chart_of(*ys, **more):
    """A chart of one line over 1, 2, 3 and so on."""
    return line_chart(
        "t", {"now": [Point(x, y, f"{x} steps") for x, y in enumerate(ys, 1)]}, show=str, about="a", **more
    )


def heights(chart):
    """How high its points lie, in pixels from above."""
    return [down for _, down, _ in chart.lines[0].points]


def test_axes_are_logarithmic_where_that_is_needed():
    """From twenty times on, as far from each other as their logarithms; never with a zero among the values."""
    low, middle, high = heights(chart_of(1.0, 10.0, 100.0))
    assert low - middle == pytest.approx(middle - high, abs=0.2)
    low, middle, high = heights(chart_of(0.0, 10.0, 100.0))
    assert low - middle == pytest.approx((low - high) / 10, abs=0.2)


def test_ticks_are_round_few_and_at_their_place():
    """Also where nothing differs, and where values are as far apart as numbers can be."""
    assert [words for _, words in chart_of(0.0, 93.0).up] == ["0.0", "20.0", "40.0", "60.0", "80.0"]
    assert [words for _, words in chart_of(2.0, 300.0).up] == ["10.0", "100.0"]
    for ys in ((5.0, 5.0), (1e-300, 1e300), (0.0, 0.0), (1.0, 1e9)):
        chart = chart_of(*ys)
        assert len(chart.up) <= 9
        assert all(0 <= at <= chart.height for at, _ in chart.up)
        assert all(0 <= down <= chart.height for down in heights(chart))


def test_many_points_have_few_ticks_below():
    """Each of eight, every so manieth of more; a tick says the number alone."""
    assert [words for _, words in chart_of(*range(1, 9)).across] == [str(x) for x in range(1, 9)]
    assert len(chart_of(*range(100)).across) <= 8


def test_single_calls_have_a_stroke_each_and_a_median():
    chart = strip_chart("Calls", {"now": [2.0, 3.0, 4.0], "baseline": [1.0]}, show=str)
    assert [line.path.count("M") for line in chart.lines] == [3, 1]
    assert (
        chart.label == "Calls: now 3 calls, median 3.0, from 2.0 to 4.0; baseline 1 calls, median 1.0, from 1.0 to 1.0"
    )
    assert chart.lines[1].points[0][0] < chart.lines[0].points[0][0]
