"""Which cases are drawn as one curve, or beside each other: decided by their names alone."""

import pytest

from jaxgate.ext.page.curves import find_series, find_variants


def curves(*names):
    """Of each curve its name, its unit and its numbers."""
    return [(one.name, one.unit, [value for value, _ in one.members]) for one in find_series(names)]


def test_names_that_differ_in_one_number_are_a_curve():
    """Over that number, in its order, with what it counts."""
    found = find_series(["scan/rnn-over-256-steps-vs-loop", "scan/rnn-over-32-steps-vs-loop"])
    (one,) = found
    assert (one.name, one.unit) == ("scan/rnn-over-N-steps-vs-loop", "steps")
    assert one.members == ((32, "scan/rnn-over-32-steps-vs-loop"), (256, "scan/rnn-over-256-steps-vs-loop"))


def test_sizes_are_compared_in_bytes():
    """Whatever their unit is, binary or decimal; with a hyphen before it, or none."""
    names = ["psum-of-4-KiB", "psum-of-64-KiB", "psum-of-1-MiB", "psum-of-2MB", "psum-of-512-B"]
    assert curves(*names) == [("psum-of-N", "bytes", [512, 4096, 65536, 1048576, 2_000_000])]


@pytest.mark.parametrize(
    "names",
    [
        ("cast-in-bfloat16-vs-plain", "cast-in-bfloat32-vs-plain"),
        ("step-on-2x4", "step-on-4x4"),
        ("conv2d-vs-plain", "conv3d-vs-plain"),
        ("rnn-over-32-steps", "lstm-over-64-steps"),
        ("over-32-steps-by-4", "over-64-steps-by-8"),
        ("over-32-steps", "over-32-steps"),
    ],
    ids=["type", "mesh", "word", "two words", "two numbers", "one case"],
)
def test_what_is_no_curve(names):
    """A number within a word, or names that differ in more than one number."""
    assert curves(*names) == []


def test_a_case_may_be_of_two_curves():
    """A grid of two numbers has one for each row and each column."""
    grid = [f"matmul-{rows}-by-{columns}" for rows in (64, 128) for columns in (16, 32)]
    assert [name for name, _, _ in curves(*grid)] == [
        "matmul-N-by-16", "matmul-64-by-N", "matmul-N-by-32", "matmul-128-by-N",
    ]  # fmt: skip


def test_one_device_and_two_devices_are_one_curve():
    """The word after the number may be of one or of many."""
    assert curves("step-on-1-device-vs-all", "step-on-2-devices-vs-all", "step-on-8-devices-vs-all") == [
        ("step-on-N-devices-vs-all", "devices", [1, 2, 8])
    ]


def test_numbers_as_parameters_of_pytest_write_them():
    """In brackets, after an equals sign, with a fraction."""
    assert curves("train[steps=128]", "train[steps=256]") == [("train[steps=N]", "", [128, 256])]
    assert curves("sample-at-0.5", "sample-at-0.75") == [("sample-at-N", "", [0.5, 0.75])]


def test_three_ways_to_do_one_thing_are_variants():
    """Between the same beginning and the same end; each is named by what is its own."""
    names = [f"pjit/mlp-train-step-{how}-vs-gathered" for how in ("batch-on-8", "fsdp-on-8", "hybrid-on-2x4")]
    (found,) = find_variants(names)
    assert found.name == "pjit/mlp-train-step-…-vs-gathered"
    assert found.members == tuple(zip(("batch-on-8", "fsdp-on-8", "hybrid-on-2x4"), names, strict=True))


def test_one_of_the_variants_may_have_nothing_of_its_own():
    (found,) = find_variants(
        ["f/train-step", "f/train-step-with-remat", "f/train-step-in-halves", "f/train-step-fused"]
    )
    assert [own for own, _ in found.members] == ["as it is", "with-remat", "in-halves", "fused"]


@pytest.mark.parametrize(
    "names",
    [
        ("f/train-a-vs-x", "f/train-b-vs-x", "f/train-c-vs-x"),
        ("f/train-step-a-vs-x", "f/train-step-b-vs-x"),
        ("f/train-step-a-vs-x", "f/train-step-b-vs-y", "f/train-step-c-vs-z"),
        ("f/train-step-a", "g/train-step-b", "h/train-step-c"),
        ("psum-of-1-MiB", "psum-of-4-MiB", "psum-of-16-MiB"),
    ],
    ids=["one word", "a pair", "other ends", "other families", "a curve"],
)
def test_what_are_no_variants(names):
    """Too little in common, too few of them, or numbers, which are a curve."""
    assert find_variants(names) == ()


def test_a_hundred_thousand_digits_are_read_at_once():
    """A hostile name costs no time: no rule goes back over it."""
    assert curves("f/" + "1" * 5000 + "-a", "f/" + "-1" * 5000) == []
