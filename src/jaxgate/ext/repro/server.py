"""Compiles programs for whoever asks, in the environment that it is started in: ``python -I server.py``.

It needs jax and NumPy only, so that any other environment can run it. A question and its answer are each one line of
JSON. Each question has ``programs``: modules in base64, each with ``donated`` and ``options``. The answer has their
``facts``; where there are ``inputs`` the ``results`` of the only program, and with ``rounds`` ``ratios`` of their times.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np

Values = np.ndarray[Any, Any]


@lru_cache(maxsize=8)
def compiled(text: str) -> Any:
    """A program, as JSON, as an executable of its flat arguments; the last ones are remembered."""
    program = json.loads(text)
    like = [jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(name)) for name, shape in program["inputs"]]
    made = [(tuple(shape), jnp.dtype(name)) for name, shape in program["outputs"]]
    shell = jax.export.export(jax.jit(lambda *_: [jnp.zeros(*one) for one in made]))(*like)
    exported = dataclasses.replace(
        shell,
        mlir_module_serialized=base64.b64decode(program["module"]),
        module_kept_var_idx=tuple(range(len(like))),
        calling_convention_version=10,
    )
    jax.config.update("jax_disable_most_optimizations", program["quick"])
    jitted = jax.jit(exported.call, donate_argnums=tuple(program["donated"]))
    return jitted.lower(*like).compile(compiler_options=program["options"] or None)


def facts(executable: Any) -> dict[str, float]:
    """What the compiler says of a program, by jaxgate's names."""
    memory, cost = executable.memory_analysis(), executable.cost_analysis() or {}
    return {
        "temp_bytes": memory.temp_size_in_bytes,
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "aliased_bytes": memory.alias_size_in_bytes,
        "xla_flops": cost.get("flops", 0.0),
        "xla_bytes": cost.get("bytes accessed", 0.0),
        "transcendentals": cost.get("transcendentals", 0.0),
    }


def ratios(sides: Sequence[Any], inputs: Sequence[Sequence[Values]], rounds: int) -> list[float]:
    """Times of the second against the first, round by round, in turn."""
    found = []
    for turn in range(rounds):
        took = [0.0, 0.0]
        for at in (0, 1) if turn % 2 else (1, 0):
            given = jax.block_until_ready([jnp.asarray(one) for one in inputs[at]])
            begin = time.perf_counter()
            jax.block_until_ready(sides[at](*given))
            took[at] = time.perf_counter() - begin
        found.append(took[1] / took[0])
    return found


def unpack(packed: Mapping[str, Any]) -> Values:
    """An array out of JSON."""
    name = packed["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
    return np.frombuffer(base64.b64decode(packed["content"]), dtype).reshape(packed["shape"])


def pack(values: Values) -> dict[str, Any]:
    """An array for JSON."""
    content = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return {"dtype": values.dtype.name, "shape": list(values.shape), "content": content}


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of some programs."""
    executables = [compiled(json.dumps(program)) for program in question["programs"]]
    inputs = [[unpack(one) for one in given] for given in question.get("inputs", ())]
    if "rounds" in question:
        return {"ratios": ratios(executables, inputs, question["rounds"])}
    if inputs:
        return {"results": [pack(np.asarray(one)) for one in executables[0](*inputs[0])]}
    return {"facts": [facts(executable) for executable in executables]}


def main() -> None:
    """Answer until nobody asks any more; what a program cannot do is an answer, too."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer
    jax.config.update("jax_enable_x64", True)
    answers.write(json.dumps({"jax": jax.__version__, "platform": jax.default_backend()}) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whoever asked tries something else
            reply = {"refused": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
