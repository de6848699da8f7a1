"""Normalised programs and their differences: what means nothing is gone, what means something is shown."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from support.hlo import STORED

from jaxgate.observe.hlo.diff import DIFF_LIMIT, MOST_PAIRS, normalise, program_diff

X = jnp.ones((4, 4))


def lowered(function, **options):
    return jax.jit(function).lower(X).as_text(**options)


def compiled(function):
    return jax.jit(function).lower(X).compile().as_text()


def helper(x):
    return jnp.sin(x) * 2


def renamed(x):
    return jnp.sin(x) * 2


def first(x):
    """A program with a nested function, named results and a loop."""
    y = jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c), jax.jit(helper)(x))
    return {"loss": y.sum()}


def second(x):
    """The same program, on other lines and under another name."""
    return {"loss": jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c), jax.jit(helper)(x)).sum()}


def relabelled(x):
    return {"cost": second(x)["loss"]}


@pytest.mark.parametrize("text", [lowered, partial(lowered, debug_info=True), compiled])
@pytest.mark.parametrize("other", [second, relabelled])
def test_names_lines_and_output_keys_do_not_differ(text, other):
    """A renamed, moved program is the same, in StableHLO with and without locations and in optimised HLO."""
    assert normalise(lowered(first, debug_info=True)) == normalise(lowered(first))
    assert text(first) != text(other)
    assert program_diff(text(first), text(other)) == ()


def test_one_new_operation_is_one_new_line():
    """Numbers that shift behind it are no difference."""

    def changed(x):
        return {"loss": jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c), jnp.cos(jax.jit(helper)(x))).sum()}

    diff = program_diff(lowered(first), lowered(changed))
    (line,) = [line for line in diff if line[0] in "+-"]
    assert line == "+    %v.1 = stablehlo.cosine %v.0 : tensor<4x4xf32>"


def test_one_changed_number_is_shown():
    """A literal is no name: its digits stay, in both languages."""
    diff = program_diff(lowered(lambda x: x * 0.125), lowered(lambda x: x * 0.25))
    assert [line.strip() for line in diff if line[0] in "+-"] == [
        "-    %cst.0 = stablehlo.constant dense<1.250000e-01> : tensor<f32>",
        "+    %cst.0 = stablehlo.constant dense<2.500000e-01> : tensor<f32>",
    ]
    diff = program_diff(compiled(lambda x: x * 0.125), compiled(lambda x: x * 0.25))
    assert [line[0] + line.rpartition(" ")[2] for line in diff if line[0] in "+-"] == [
        "-constant(0.125)",
        "+constant(0.25)",
    ]


@pytest.mark.parametrize("text", [lowered, compiled])
def test_a_swapped_operand_is_shown(text):
    """Where nothing but the numbers differs, they count."""

    def one(x):
        a, b = x @ x, x.T @ x
        return a @ b

    def other(x):
        a, b = x @ x, x.T @ x
        return b @ a

    assert program_diff(text(one), text(other)) != ()


def test_a_custom_calls_target_is_kept():
    """What a program calls is no name that could be numbered."""
    text = "module @jit_f {\n  func.func public @main() {\n    stablehlo.custom_call @solve_1() : () -> ()\n  }\n}\n"
    diff = program_diff(text, text.replace("solve_1", "solve_2"))
    assert [line[0] for line in diff if "solve" in line] == ["-", "+"]


def test_a_loops_length_is_shown():
    """Of the backend's configuration the length of a loop stays."""

    def loop(length, x):
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=length)[0]

    diff = program_diff(compiled(partial(loop, 5)), compiled(partial(loop, 6)))
    assert [line[0] for line in diff if line.endswith(("known_trip_count=5", "known_trip_count=6"))] == ["-", "+"]


@pytest.mark.parametrize("text", STORED.values(), ids=STORED)
def test_stored_programs_are_normalised_once(text):
    """No metadata is left on any platform, shapes and layouts are, and doing it again changes nothing but numbers."""
    normal = normalise(text)
    assert "metadata=" not in normal
    assert "/home/user" not in normal
    assert "backend_config" not in normal
    assert normal.count("{1,0") == text.count("{1,0")
    assert normalise(normal) == normal


def test_long_programs_that_repeat_are_counted_not_aligned():
    """A difference that would take minutes to align says so, and tells what one side has more often."""

    def unrolled(scale, x):
        for _ in range(1500):
            x = jnp.tanh(x @ x) * scale
        return x

    before, now = lowered(partial(unrolled, 2.0)), lowered(partial(unrolled, 3.0))
    assert (len(before.split("\n")) // 5) ** 2 > MOST_PAIRS
    diff = program_diff(before, now)
    assert diff[0].startswith("too many equal lines to align (")
    assert diff[0].endswith("): lines that one side has more often")
    assert diff[1:] == (
        "-1,500 × %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>",
        "+1,500 × %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>",
    )


def test_what_is_left_out_is_counted():
    """A long difference is cut, and the last line says by how much."""

    def chain(operations, x):
        for operation in operations:
            x = operation(x)
        return x

    before, now = lowered(partial(chain, [jnp.sin] * 60)), lowered(partial(chain, [jnp.cos] * 60))
    whole = program_diff(before, now, limit=10_000)
    diff = program_diff(before, now)
    assert diff[:-1] == whole[:DIFF_LIMIT]
    assert diff[-1] == f"… {len(whole) - DIFF_LIMIT} more lines of this difference"
    assert program_diff(before, now, limit=len(whole) - 1)[-1] == "… 1 more line of this difference"


@pytest.mark.parametrize(
    "text", ["", "\n", "HloModule", "HloModule ", "module @", "%", "FileNames\n1 2", '"', "loc(((("]
)
def test_any_text_is_taken(text):
    assert program_diff(text, text) == ()
    assert program_diff(text, "module @jit_f {\n}") != ()
