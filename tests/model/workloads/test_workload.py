"""Workloads: a builder above which cases are made, and what a computation fills in."""

import pytest

import jaxgate
from jaxgate.model.computation import Amount, Batch, Computation
from jaxgate.model.workload import Family, Tolerance

MORE = Tolerance(fact="temp_bytes", relative=0.2, why="a test says so")
SIZES = {"small": 2, "full": 20}


def computation(**fields):
    """One that does nothing."""
    return Computation(subject=abs, args=(1,), **fields)


def test_a_builder_makes_a_case_of_each_set_of_parameters():
    """In order, with its name, the parameters bound, and everything that all of them share."""
    family = Family("scan")

    @family.workload(
        "{steps}-steps-{how}", sweep=[{"steps": 1, "how": "a"}, {"steps": 2, "how": "b"}], tolerances=[MORE]
    )
    def build(steps, how):
        return computation(kwargs={"steps": steps, "how": how})

    assert [case.name for case in family] == ["scan/1-steps-a", "scan/2-steps-b"]
    assert [dict(case.build().kwargs) for case in family] == [{"steps": 1, "how": "a"}, {"steps": 2, "how": "b"}]
    assert [(case.tolerances, case.devices, dict(case.sizes)) for case in family] == [((MORE,), 1, {})] * 2
    assert build(3, "c").kwargs == {"steps": 3, "how": "c"}


def test_a_builder_without_parameters_is_one_case():
    """And several sentences may stand above one builder."""
    family = Family("scan")

    @family.workload("once")
    @family.workload("twice", devices=2)
    def build():
        return computation()

    assert [(case.sentence, case.devices) for case in family] == [("twice", 2), ("once", 1)]
    assert len(family) == 2


def test_a_builder_is_given_its_size():
    family = Family("scan")

    @family.workload("sized", sizes=SIZES)
    def build(size):
        return computation(kwargs={"size": size})

    (case,) = family
    full = case.sized("full", usual="small")
    assert [one.build().kwargs["size"] for one in (case, case.sized("small", usual="small"), full)] == [2, 2, 20]
    assert (full.name, case.names) == ("scan/sized.full", ("scan/sized", "scan/sized.small", "scan/sized.full"))


@pytest.mark.parametrize(
    ("sentence", "more", "because"),
    [
        ("a b", {}, "'a b' cannot name a case"),
        ("x", {"sizes": {"small": 1}}, "expected the sizes small, full, found small"),
        ("x", {"tolerances": [MORE, MORE]}, "expected one tolerance for each fact"),
        ("x-{n}", {"sweep": (one for one in ())}, "scan/x-{n}: expected at least one set of parameters in sweep="),
    ],
    ids=["a space", "one size", "two tolerances", "an empty sweep"],
)
def test_what_cannot_be_a_case_is_refused(sentence, more, because):
    with pytest.raises(ValueError, match=because):
        Family("scan").workload(sentence, **more)(lambda *_: computation())


@pytest.mark.parametrize(
    ("fields", "rtol", "atol"),
    [
        ({}, 1e-4, 1e-5),
        ({"rtol": 1e-2}, 1e-2, 1e-3),
        ({"rtol": 1e-2, "atol": 0.0}, 1e-2, 0.0),
        ({"atol": 1.0}, 1e-4, 1.0),
    ],
)
def test_the_absolute_tolerance_follows_from_the_relative_one(fields, rtol, atol):
    made = computation(**fields)
    assert (made.rtol, made.atol) == (rtol, pytest.approx(atol))


def test_the_samples_of_a_batch_are_what_a_call_gets_done():
    batch = Batch(argument=0, size=8)
    assert computation().amount is None
    assert computation(batch=batch).amount == Amount(count=8, unit="samples")
    assert computation(batch=Batch(argument=0, size=8, unit="rows")).amount == Amount(count=8, unit="rows")
    tokens = Amount(count=64, unit="tokens")
    assert computation(batch=batch, amount=tokens).amount == tokens


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"carry": 0, "next_args": lambda result, args: args}, "expected carry= or next_args=, found both"),
        ({"claims": ["temp_bytes <= reference"]}, "expected claims such as claim"),
    ],
)
def test_a_computation_that_contradicts_itself_is_refused(fields, because):
    with pytest.raises(TypeError, match=because):
        computation(**fields)


def test_no_other_name_is_there():
    with pytest.raises(AttributeError, match="no attribute 'at_mots'"):
        _ = jaxgate.model.at_mots
