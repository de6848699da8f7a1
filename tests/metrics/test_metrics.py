"""A run as OpenMetrics: each line is one of the format's, whatever cases are called."""

import re

import pytest
from support.histories import case, run

from jaxgate.ext.metrics.pages import openmetrics
from jaxgate.model.outcome import TimeRecord

LABEL = r'[a-z]+="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"(jaxgate_[a-z_]+)(?:\{{{LABEL}(?:,{LABEL})*\}})? (-?[\d.e+-]+)")


def read(text):
    """Its samples in order, each with its value; every line must be one of the format."""
    *lines, last, end = text.split("\n")
    assert (last, end) == ("# EOF", "")
    found, family = [], ""
    for line in lines:
        if line.startswith("# TYPE "):
            family = line.split()[2]
        elif line.startswith("#"):
            assert line.startswith(f"# HELP {family} ")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == family  # those of one family stand together
            found.append((line.rpartition(" ")[0], float(sample[2])))
    assert len(dict(found)) == len(found)
    return dict(found)


def test_a_run_has_its_end_its_verdicts_and_its_numbers():
    red = case("train/step", status="REGRESSED", time=TimeRecord(status="SLOWER", ratio=1.5))
    samples = read(openmetrics(run(1, red, case("train/other"), gate_exit=1, not_judged=("a", "b"))))
    at = 'hardware="cpu-amd-epyc-1-jax-0.10"'
    assert samples["jaxgate_gate_exit"] == 1
    assert samples["jaxgate_not_judged"] == 2
    assert samples[f'jaxgate_case_failed{{case="train/step",{at},status="REGRESSED"}}'] == 1
    assert samples[f'jaxgate_case_failed{{case="train/other",{at},status="SAME"}}'] == 0
    assert samples[f'jaxgate_case_value{{case="train/step",{at},name="temp_bytes"}}'] == 4000
    assert samples[f'jaxgate_case_time_ratio{{case="train/step",{at}}}'] == 1.5


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a{b} 1", "a\x00\x1bb", "ä/ß", "a\u2028b", "\ud800"])
def test_a_name_cannot_be_more_than_a_name(name):
    """Not a line of its own, and not a text that is no UTF-8."""
    text = openmetrics(run(1, case(name, time=TimeRecord(status="UNDECIDED"))))
    samples = read(text)
    assert sum(sample.startswith("jaxgate_case_failed") for sample in samples) == 1
    assert not any(sample.startswith("jaxgate_case_time_ratio") for sample in samples)
    text.encode()


def test_numbers_that_are_none_are_left_out():
    """The format has NaN, and a monitor would draw it."""
    broken = case("train/step", temp_bytes=float("nan"))
    assert not any('name="temp_bytes"' in sample for sample in read(openmetrics(run(1, broken))))
    assert "jaxgate_case_value{" not in openmetrics(run(1, case("train/step", figures=None)))
