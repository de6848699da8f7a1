"""Delta debugging on lists of words: what is left is what shows it, whatever the order and the budget."""

import itertools

import pytest

from jaxgate.ext.repro.delta_debugging import Move, Reduction


def words(count):
    """So many words."""
    return tuple(f"w{number}" for number in range(count))


def without(thing, parts):
    """The words that are left."""
    return tuple(word for word in thing if word not in parts)


def dropping(**changes):
    """A move that takes words away."""
    return Move(**({"name": "drops", "parts": lambda thing: thing, "without": without} | changes))


def search(shows, *moves, **changes):
    """A search by these moves."""
    return Reduction(moves or (dropping(),), shows=shows, size=lambda thing: (len(thing),), **changes)


def needing(*needed):
    """Shows it where these words are left."""
    return lambda thing: set(needed) <= set(thing)


@pytest.mark.parametrize(
    ("needed", "most"), [(["w63"], 40), (["w3", "w50", "w97"], 150), (["w40", "w41", "w42", "w43"], 150), ([], 40)]
)
def test_nothing_but_what_is_needed_is_left(needed, most):
    """In fewer tries than there are words, where what is needed stands together."""
    found = search(needing(*needed))
    *_, step = found.steps(words(100))
    assert sorted(step.found) == sorted(needed)
    assert step.tries <= found.tries < most


def test_every_step_shows_it_and_is_smaller():
    """So that whoever stops early has something that holds; nothing is asked for twice."""
    seen, shows = [], needing("w7", "w30")
    steps = list(search(lambda thing: seen.append(thing) or shows(thing)).steps(words(40)))
    assert all(shows(step.found) for step in steps)
    assert [len(step.found) for step in steps] == sorted({len(step.found) for step in steps}, reverse=True)
    assert len(seen) == len(set(seen))


def test_parts_that_need_each_other_go_together():
    """One half of a pair alone is no thing: that is not asked for."""

    def paired(thing, parts):
        left = without(thing, parts)
        return left if len({"w1", "w8"} & set(left)) != 1 else None

    moves = dropping(without=paired), dropping(without=lambda *_: None)
    assert "w4" in list(search(needing("w4"), *moves).steps(words(10)))[-1].found


def test_moves_are_taken_again_until_none_helps():
    last = dropping(name="drops the last", parts=lambda thing: thing[-1:])
    first = dropping(name="drops the first", parts=lambda thing: thing[:1], one_by_one=True)
    steps = list(search(needing("w3"), last, first).steps(words(6)))
    assert steps[-1].found == ("w3",)
    assert {step.move for step in steps} == {"drops the last", "drops the first"}


def test_one_by_one_takes_the_first_that_works():
    steps = search(needing("w0"), dropping(one_by_one=True)).steps(words(4))
    assert [step.found for step in steps] == [("w0", "w2", "w3"), ("w0", "w3"), ("w0",)]


def test_what_is_not_smaller_is_not_gone_on_with():
    """A move that changes and does not shrink would never end."""
    found = search(lambda _: True, dropping(name="turns", without=lambda thing, _: thing[1:] + thing[:1]))
    assert list(found.steps(words(5))) == []
    assert found.tries == 0


def test_time_that_is_up_keeps_the_best():
    left = itertools.count()
    found = search(needing("w5"), over=lambda: next(left) > 4)
    *_, step = found.steps(words(64))
    assert 0 < len(step.found) < 64
    assert found.tries <= 5


def test_an_interruption_leaves_the_last_step():
    tries, found = itertools.count(), []

    def shows(thing):
        if next(tries) == 3:
            raise KeyboardInterrupt
        return "w5" in thing

    with pytest.raises(KeyboardInterrupt):
        found.extend(step.found for step in search(shows).steps(words(64)))
    assert "w5" in found[-1]
    assert len(found[-1]) < 64
