"""The page of a case's history: what moved in words, curves over its runs, and all runs."""

import re

from support.history_points import FOLDER, named, point

from jaxgate.ext.history.page import history_document

HOSTILE = '</script><script>alert("1")</script>'


def page(points, changes=(), relative=None):
    """The page of some runs."""
    return history_document(points, {FOLDER: changes}, {FOLDER: relative or {}})


def charts(text):
    """The values of each chart, as its points say them."""
    found = {}
    for figure in re.findall(r"<figure>(.*?)</figure>", text, re.DOTALL):
        title = re.search(r"<figcaption>(.*?)</figcaption>", figure)[1]
        found[title] = [words.rpartition(": ")[2] for words in re.findall(r"<title>(.*?)</title>", figure)]
    return found


def runs(*ratios, **figures):
    """Runs against one baseline; figures by name, a number for each run."""
    return [
        point(
            number,
            f"p{number}",
            named("p", 0),
            ratio,
            figures={name: values[number] for name, values in figures.items()},
        )
        for number, ratio in enumerate(ratios)
    ]


def test_a_curve_for_each_quantity_that_moved():
    """The ratio, the time since the first baseline, and the facts that were not always the same; no other."""
    relative = {"0": 1.0, "1": 1.05, "2": 1.1}
    found = charts(page(runs(1.0, 1.01, 1.03, temp_bytes=[1000, 1000, 2000], traces=[1, 1, 1]), relative=relative))
    assert found == {
        "against the first baseline": ["1.00 ×", "1.05 ×", "1.10 ×"],
        "against the baseline": ["1.00 ×", "1.01 ×", "1.03 ×"],
        "temp_bytes": ["1 kB", "1 kB", "2 kB"],
    }


def test_an_unchanged_program_is_drawn_as_1_and_a_gap_as_nothing():
    """SAME without a duel means the same program; a run without a time has no point."""
    points = [*runs(None, 1.02), point(2, "p2", named("p", 0), None, time_status="UNDECIDED")]
    (chart,) = charts(page(points)).values()
    assert chart == ["1.00 ×", "1.02 ×"]
    assert "identical program" in page(points)


def test_what_moved_and_every_run_are_there_without_scripts():
    """In words, and as a table with the newest run first."""
    text = page(runs(1.0, 1.25, run_ns=[1e6, 2e6]), ["time creeps: 3.2 %"])
    assert "<li>time creeps: 3.2 %</li>" in text
    assert text.index("1.25 × [") < text.index("1.00 × [")
    assert "All 2 runs, the newest first" in text


def test_each_hardware_has_a_section():
    other = [point(number, "p", named("p", 0), 1.0, folder="gpu-b-1-jax-0.12") for number in range(2)]
    text = page([*runs(1.0, 1.1), *other])
    assert text.count("<h2") == 2
    assert len(charts(text)) == 1, "nothing moved on the other"


def test_a_name_stays_a_name():
    text = page([point(0, "p", None, None, case=HOSTILE, folder=HOSTILE, commit=HOSTILE, status=HOSTILE)])
    assert HOSTILE not in text
    assert "alert(" in text
