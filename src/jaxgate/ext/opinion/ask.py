"""Is a compiled program's result right? It is held against the reference interpreter's, or a second compile's without libraries."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxgate.ext.opinion.agreement import Agreement, Run, compare, is_float
from jaxgate.ext.opinion.interpreter import NotInterpretedError
from jaxgate.ext.opinion.model import Opinion, OpinionBy
from jaxgate.ext.opinion.traits import ProgramTraits, read_traits
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.feeder import Call, Values, on_host
from jaxgate.observe.arguments.signature import leaves_with_paths
from jaxgate.observe.compat import flat_executable, kept_arguments
from jaxgate.observe.errors import describe
from jaxgate.observe.program.executable_fingerprint import same_executable
from jaxgate.observe.program.export import NotReplayableError, split_call
from jaxgate.observe.trace.lowering import Lowered

WITHOUT_LIBRARIES: Mapping[str, Mapping[str, str]] = {"cpu": {"xla_cpu_experimental_ynn_fusion_type": ""}}
"""Compiler options of each platform that turn off fusions made by libraries: on CPU those of YNN, which jax 0.10.2 to
0.12.0.1 get wrong for a product that is summed up."""


class NotRecompiledError(Exception):
    """There is no second compile to compare with; the text says why, in one line."""


def compile_again(
    lowered: Lowered, leaves: Sequence[Any], executable: jax.stages.Compiled, platform: str
) -> Callable[[Sequence[Values]], list[Values]]:
    """Compile a lowered function without library fusions, to run on other arguments; nothing is traced or lowered again.

    Raises:
        NotRecompiledError: If it cannot be compiled without them, or has none.
    """
    if platform not in WITHOUT_LIBRARIES:
        raise NotRecompiledError(f"no option is known that leaves library fusions out on {platform}")
    try:
        other = lowered.stage.compile(compiler_options=dict(WITHOUT_LIBRARIES[platform]))
    except Exception as error:  # an XLA without these options, or one that does without its libraries badly
        raise NotRecompiledError(f"the compiler refuses to leave library fusions out: {describe(error)}") from error
    if same_executable(executable, other):
        raise NotRecompiledError("its executable has no library fusion that a second compile could leave out")
    call = flat_executable(other)
    if call is None:
        raise NotRecompiledError("a second compile cannot be called on this jax")

    def run(inputs: Sequence[Values]) -> list[Values]:
        placed = [_like(leaf, values) for leaf, values in zip(leaves, inputs, strict=True)]
        results = jax.block_until_ready(call(*placed))
        return [np.asarray(on_host(result)) for result in results]

    return run


def _like(leaf: Any, values: Values) -> Any:
    """Values where an argument lies; in a buffer of their own, as the program may take it."""
    sharding = leaf.sharding if isinstance(leaf, jax.Array) and leaf.committed else None
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.device_put(jax.random.wrap_key_data(values, impl=jax.random.key_impl(leaf)), sharding)
    return jax.device_put(np.array(values), sharding, may_alias=False)


STEPS_PER_SECOND = 1e6
"""What the interpreter does at least; its median is three times that (2026-11-23, two shared cores)."""
INTERPRETER_SHARE = 0.1
"""Of the seconds that an opinion may take, what the interpreter is asked for: its result may be computed three times."""
PATIENCE = 10.0
"""How many times as long as predicted the interpreter may take: sorting and short loops are slow, and machines busy."""

LEAST_S = 5.0
"""Seconds that it may take in any case, on a machine that has other work."""


Interpret = Callable[..., list[Values]]
"""Runs a program in the reference interpreter: ``InterpreterProcess.interpret``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A result that somebody else is asked about."""

    lowered: Lowered  # the program
    call: Call  # its arguments, on the device, as they were before the call
    result: Any  # what the compiled program gave, on the host
    executable: jax.stages.Compiled  # the compiled program
    compile_ns: int | None  # what its compiler took; `None` if that is not known
    platform: str  # where it runs


def second_opinion(question: Question, interpret: Interpret, *, limit_s: float) -> Opinion:
    """Ask the interpreter where the program is small enough, else compile it again without library fusions.

    A second compile may take ``limit_s``, by what the first took; the interpreter gets a tenth of it.
    """
    try:
        with jax.transfer_guard("allow"):  # none of the program's own
            return _opinion(question, interpret, limit_s)
    except (NotReplayableError, NotRecompiledError) as error:
        return Opinion(why_not=str(error))
    except Exception as error:  # noqa: BLE001 - whatever fails here is no fault of the case: nothing is known, and that is said
        return Opinion(why_not=f"it failed: {describe(error)}")


def _opinion(question: Question, interpret: Interpret, limit_s: float) -> Opinion:
    lowered = question.lowered
    module = lowered.stage.compiler_ir("stablehlo")
    traits = read_traits(module, question.platform)
    leaves, _ = split_call(lowered, question.call)
    inputs = [_typed(leaf, info) for leaf, info in zip(leaves, jax.tree.leaves(lowered.stage.args_info), strict=True)]
    expected_s, failed = traits.cost / STEPS_PER_SECOND, ""
    if not traits.unknown and expected_s <= limit_s * INTERPRETER_SHARE:
        try:
            run = _interpreted(lowered, module, interpret, LEAST_S + expected_s * PATIENCE)
            return _compared(question, traits, run, inputs, by=OpinionBy.INTERPRETER)
        except NotInterpretedError as error:  # it is slower than it seemed, or knows less: the second compile then
            failed = f"; {OpinionBy.INTERPRETER} gave no result: {error}"
    if question.compile_ns is not None and question.compile_ns > limit_s * 1e9:
        raise NotRecompiledError(
            f"its compiler took {question.compile_ns / 1e9:.0f} s, more than {limit_s:g} s{failed}"
        )
    try:
        again = compile_again(lowered, leaves, question.executable, question.platform)
    except NotRecompiledError as error:
        raise NotRecompiledError(f"{error}{failed}") from error
    return _compared(question, traits, again, inputs, by=OpinionBy.SECOND_COMPILE)


def _typed(leaf: Any, info: Any) -> Values:
    """The values of an argument, in the type that the program takes: a Python number has none of its own."""
    values = on_host(leaf)
    if not isinstance(values, np.ndarray):
        raise NotReplayableError("its arguments are spread over processes")
    is_key = jax.dtypes.issubdtype(info.dtype, jax.dtypes.prng_key)
    return values if is_key else values.astype(info.dtype)


def _interpreted(lowered: Lowered, module: Any, interpret: Interpret, limit_s: float) -> Run:
    """The program as the interpreter runs it, without the arguments that it does not use."""
    kept = kept_arguments(lowered.stage)
    if kept is None:
        raise NotInterpretedError("the arguments that its program uses cannot be read on this jax")
    content = io.BytesIO()
    module.operation.write_bytecode(content)

    def run(inputs: Sequence[Values]) -> list[Values]:
        return interpret(content.getvalue(), [inputs[place] for place in kept], limit_s=limit_s)

    return run


def _compared(question: Question, traits: ProgramTraits, run: Run, inputs: list[Values], *, by: OpinionBy) -> Opinion:
    named = leaves_with_paths((question.result,), {}, ("result",))
    paths, ours = [path for path, _ in named], [np.asarray(values) for _, values in named]
    in_order = by is OpinionBy.INTERPRETER
    found = compare(ours, run, inputs, eps=traits.eps, longest_sum=traits.longest_sum, in_order=in_order)
    left = tuple(paths[number] for number in found.left_alone)
    if found.apart is None:
        return Opinion(why_not=f"float error alone may explain any difference of {shortlist(left, MAX_NAMED)}")
    wrong = "" if found.wrong is None else _difference(found, paths[found.wrong], by)
    return Opinion(by=by, left_alone=left, apart=found.apart, wrong=wrong)


def _difference(found: Agreement, path: str, by: OpinionBy) -> str:
    """Where two results differ, for people."""
    worst = found.distance
    where = f"{path}{list(worst.place) if worst.place else ''}"
    differs = "differs from the program's meaning" if by is OpinionBy.INTERPRETER else "depends on its library fusions"
    return (
        f"{where}: the compiler's result {differs}: it gives {_text(worst.ours)}, {by} {_text(worst.theirs)}; "
        f"{worst.count:,} of {worst.size:,} elements differ by more than float error explains ({found.allowed:.1g} of the "
        "largest)"
    )


def _text(value: Any) -> str:
    if value.dtype.kind == "c":
        return f"{complex(value):.6g}"
    return f"{float(value):.6g}" if is_float(value) else str(value)
