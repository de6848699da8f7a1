"""Two sides beside each other: what differs, which way, and what cannot be compared."""

from jaxgate.ext.diff.judge import diff_sides
from jaxgate.ext.diff.model import DiffSide, Way
from jaxgate.ext.history.model import HistoryPoint

FIGURES = {"temp_bytes": 100_000, "donated_bytes": 64, "code_bytes": 10, "compile_ns": 5e6, "run_ns": 100.0}


def one(folder="cpu-a-1-jax-0.10", program="p", environment=None, **figures):
    """A case on one side."""
    known = {name: value for name, value in (FIGURES | figures).items() if value is not None}
    where = {"folder": folder, "environment": environment or {"jax": "0.10.2"}}
    return HistoryPoint(run="", moment="", case="", program=program, figures=known, **where)


def side(name="a", **cases):
    """A side, of cases by name."""
    found = {key: value if isinstance(value, tuple) else (value,) for key, value in cases.items()}
    return DiffSide(name=name, about="", cases=found)


def test_identical_sides_do_not_differ():
    (case,) = diff_sides(side(x=one()), side(x=one(run_ns=900.0))).cases
    assert (case.way, case.facts, case.same_program) == (Way.SAME, (), True)
    assert diff_sides(side(x=one(program="")), side(x=one())).cases[0].same_program is None
    assert {time.name: time.ratio for time in case.times} == {"compile_ns": 1.0, "run_ns": 9.0}


def test_the_policy_says_which_way_is_worse():
    (case,) = diff_sides(side(x=one()), side(x=one(temp_bytes=200_000, donated_bytes=0))).cases
    assert [(fact.name, fact.way) for fact in case.facts] == [("donated_bytes", Way.WORSE), ("temp_bytes", Way.WORSE)]
    (case,) = diff_sides(side(x=one(temp_bytes=200_000)), side(x=one())).cases
    assert (case.way, case.facts[0].ratio) == (Way.BETTER, 0.5)
    (case,) = diff_sides(side(x=one(temp_bytes=1_000_000)), side(x=one(temp_bytes=1_000_001))).cases
    assert case.way is Way.MOVED  # it would pass the gate, and it is another number


def test_other_hardware_is_neither_worse_nor_better():
    """A compiler for another chip makes something else of the program."""
    (case,) = diff_sides(side(x=one()), side(x=one(folder="gpu-b-1-jax-0.10", temp_bytes=900_000))).cases
    assert (case.comparable, case.way) == (False, Way.MOVED)


def test_a_fact_of_another_python_is_not_judged():
    """The policy compares calls inside of JAX within one release of it only."""
    now = one(jax_calls=900, environment={"python": "3.12"})
    (case,) = diff_sides(side(x=one(jax_calls=100, environment={"python": "3.11"})), side(x=now)).cases
    assert case.way is Way.MOVED
    (case,) = diff_sides(side(x=one(jax_calls=100)), side(x=one(jax_calls=900))).cases
    assert case.way is Way.WORSE


def test_a_fact_that_one_side_lacks_is_named():
    (case,) = diff_sides(side(x=one(temp_bytes=None)), side(x=one(code_bytes=None))).cases
    assert case.unknown == {"code_bytes": "first", "temp_bytes": "second"}


def test_worse_ones_come_first_and_larger_ones_before_smaller():
    """Of each kind by the largest difference; nothing counts as one unit."""
    before = side(a=one(), b=one(), c=one(), d=one())
    after = side(a=one(temp_bytes=50_000), b=one(temp_bytes=300_000), c=one(), d=one(temp_bytes=900_000))
    assert [case.case for case in diff_sides(before, after).cases] == ["d", "b", "a", "c"]


def test_a_case_on_several_kinds_of_hardware_meets_its_own():
    """A revision has baselines of all hardware; what only one side has is named, with its hardware where there are several."""
    found = diff_sides(side(a=one(), b=one()), side(b=one(), c=one()))
    assert (found.only_first, found.only_second, [case.case for case in found.cases]) == (("a",), ("c",), ["b"])
    cpu, gpu, tpu = (one(folder=f"{kind}-1-jax-0.10") for kind in ("cpu", "gpu", "tpu"))
    found = diff_sides(side(x=(cpu, gpu)), side(x=(gpu, tpu)))
    assert [case.case for case in found.cases] == ["x on gpu-1-jax-0.10"]
    assert (found.only_first, found.only_second) == (("x on cpu-1-jax-0.10",), ("x on tpu-1-jax-0.10",))
