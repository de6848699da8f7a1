"""Delta debugging on lists of words: what is left is what shows it, whatever the order and the budget."""

import itertools

import pytest

from jaxgate.ext.repro.delta_debugging import Move, Reduction


def words(count):
    """So many words."""
    return tuple(f"w{number}" for number in range(count))


def dropping(**changes):
    """A move that takes words away."""
    about = {"name": "drops", "parts": lambda thing: thing, "without": without}
    return Move(**(about | changes))


def without(thing, parts):
    """The words that are left."""
    return tuple(word for word in thing if word not in parts)


def reduce(start, shows, *moves, **changes):
    """The steps, and how many tries it took."""
    search = Reduction(moves or (dropping(),), shows=shows, size=lambda thing: (len(thing),), **changes)
    return list(search.steps(start)), search


@pytest.mark.parametrize("needed", [{"w0"}, {"w99"}, {"w3", "w50", "w97"}, {"w40", "w41", "w42", "w43"}, set()])
def test_nothing_but_what_is_needed_is_left(needed):
    steps, _ = reduce(words(100), lambda thing: needed <= set(thing))
    assert set(steps[-1].found) == needed


def test_what_stands_together_is_found_in_few_tries():
    """A hundred words, of which one is needed: not a hundred tries."""
    _, search = reduce(words(100), lambda thing: "w63" in thing)
    assert search.tries < 40


def test_every_step_shows_it_and_is_smaller():
    """So that whoever stops early has something that holds."""
    seen = []

    def shows(thing):
        seen.append(thing)
        return {"w7", "w30"} <= set(thing)

    steps, _ = reduce(words(40), shows)
    assert all({"w7", "w30"} <= set(step.found) for step in steps)
    assert [len(step.found) for step in steps] == sorted({len(step.found) for step in steps}, reverse=True)
    assert len(seen) == len(set(seen)), "nothing is asked for twice"


def test_parts_that_need_each_other_go_together():
    """One half of a pair alone is no thing: that is not asked for."""

    def paired(thing, parts):
        left = without(thing, parts)
        return left if len({"w1", "w8"} & set(left)) != 1 else None

    steps, _ = reduce(
        words(10), lambda thing: "w4" in thing, dropping(without=paired), dropping(without=lambda t, _: None)
    )
    assert "w4" in steps[-1].found


def test_moves_are_taken_again_until_none_helps():
    last = dropping(name="drops the last", parts=lambda thing: thing[-1:])
    first = dropping(name="drops the first", parts=lambda thing: thing[:1], one_by_one=True)
    steps, _ = reduce(words(6), lambda thing: "w3" in thing, last, first)
    assert steps[-1].found == ("w3",)
    assert {step.move for step in steps} == {"drops the last", "drops the first"}


def test_one_by_one_takes_the_first_that_works():
    asked = []

    def parts(thing):
        asked.append(thing)
        return thing

    steps, _ = reduce(words(4), lambda thing: "w0" in thing, dropping(parts=parts, one_by_one=True))
    assert [step.found for step in steps] == [("w0", "w2", "w3"), ("w0", "w3"), ("w0",)]
    assert len(asked) >= 4


def test_what_is_not_smaller_is_not_gone_on_with():
    """A move that changes and does not shrink would never end."""
    turned = dropping(name="turns", without=lambda thing, _: thing[1:] + thing[:1])
    steps, search = reduce(words(5), lambda _: True, turned)
    assert steps == []
    assert search.tries == 0


def test_time_that_is_up_keeps_the_best():
    left = itertools.count()
    steps, search = reduce(words(64), lambda thing: "w5" in thing, over=lambda: next(left) > 4)
    assert 0 < len(steps[-1].found) < 64
    assert search.tries <= 5


def test_an_interruption_leaves_the_last_step():
    tries = itertools.count()

    def shows(thing):
        if next(tries) == 3:
            raise KeyboardInterrupt
        return "w5" in thing

    search = Reduction((dropping(),), shows=shows, size=lambda thing: (len(thing),))
    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(step.found for step in search.steps(words(64)))
    assert "w5" in found[-1]
    assert len(found[-1]) < 64
