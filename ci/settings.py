"""Change every option of ``jax.config``, one at a time, and see what that does to three programs.

Usage: python ci/settings.py [NAME…]   (all options by default; about 3 s each on a 2-core CPU)

Each option gets another value in a process of its own, before anything else happens. What differs from a process in which
nothing was set is named: the environment that a baseline stores, the program, the executable, the facts, and a time beyond
three times the usual one, in two processes. Prints a Markdown table.

Exit status 1 if an option changed anything and the environment does not name it: then it must not be in ``HARMLESS``
(``observe/machine/jax_settings.py``). Options whose value JAX refuses, or under which nothing runs, are listed with the
reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Computation
from jaxgate.observe.machine.jax_settings import know_defaults
from jaxgate.observe.measure import observe
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint
from jaxgate.observe.tools import Tools
from jaxgate.processes.jax_query import find_defaults

NUMBERS = {"jax_num_cpu_devices": 2, "jax_export_calling_convention_version": 9}
"""Another value where one more than the default is none."""
TIMES, FLOOR_NS = 3.0, 100_000


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    """Products, their gradients, a reduction."""
    return jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)


def loop(w: jax.Array, x: jax.Array) -> jax.Array:
    """A scan under remat."""
    body = jax.checkpoint(lambda c, _: (jnp.sin(c @ w), c[0]))
    return jax.grad(lambda x: jnp.sum(jax.lax.scan(body, x, None, length=8)[0]))(x)


def sort(w: jax.Array, x: jax.Array) -> jax.Array:
    """A sort, a division, random numbers and integers."""
    key = jax.random.key(0)
    return jnp.sort(x, axis=0) / (1 + jnp.abs(jax.random.normal(key, x.shape))) + jnp.argmax(w)


PROGRAMS = {"loss": loss, "loop": loop, "sort": sort}


def look(name: str, value: Any) -> dict[str, Any]:
    """Everything that is seen of the programs where one option is set."""
    know_defaults(find_defaults())
    if name:
        jax.config.update(name, value)
    found: dict[str, Any] = {}
    for title, function in PROGRAMS.items():
        arguments = jnp.full((128, 128), 0.01), jnp.linspace(0.0, 1.0, 128 * 128).reshape(128, 128)
        build = partial(Computation, subject=jax.jit(function), args=arguments)
        observed = observe(build, Tools(store=ReferenceCache(None)))
        now = observed.measurement
        found.setdefault("environment", now.environment)
        found[title] = {
            "program": now.fingerprints.program,
            "executable": observed.lowered and executable_fingerprint(observed.lowered.stage.compile()),
            "facts": asdict(now.facts),
            "time": now.samples and now.samples.run_ns,
        }
    return found


def other_value(name: str, value: Any) -> Any:
    """Another value that JAX takes for an option; ``None`` if none is found."""
    if isinstance(value, bool):
        return not value
    if name in NUMBERS:
        return NUMBERS[name]
    if isinstance(value, int | float):
        return value + 1
    try:
        jax.config.update(name, "?")
    except ValueError as error:
        words = str(error).partition("[")[2].partition("]")[0].replace("'", "").split(", ")
        return next((word for word in words if word and word != str(value)), None)
    except Exception:  # noqa: BLE001 - it takes no text
        return None
    jax.config.update(name, value)
    return None


def differences(usual: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What an option changed in the programs."""
    changed = []
    for title in PROGRAMS:
        one, other = usual[title], found[title]
        changed += [f"{what} of {title}" for what in ("program", "executable", "facts") if one[what] != other[what]]
        if other["time"] > max(TIMES * one["time"], one["time"] + FLOOR_NS):
            changed.append(f"time of {title} {other['time'] / one['time']:.1f} ×")
    return changed


def child(name: str, value: Any, **variables: str) -> dict[str, Any] | str:
    """What a fresh process with these variables sees, or its last word."""
    command = [sys.executable, __file__, "--child", json.dumps([name, value])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it ended"])[-1][:100]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def changed_by(usual: dict[str, Any], name: str, value: Any, **variables: str) -> tuple[bool, list[str]] | str:
    """Whether the environment names what was set, and what it changed; or why nothing is known.

    Of a flag of XLA the variable itself is left out: it may be gone when somebody looks.
    """
    found = child(name, value, **variables)
    if isinstance(found, str):
        return found
    changed = differences(usual, found)
    if changed and all(what.startswith("time") for what in changed):  # a busy machine, or the option?
        again = child(name, value, **variables)
        changed = changed if isinstance(again, str) else differences(usual, again)
    seen = {what: said for what, said in found["environment"].items() if what not in variables}
    return seen != usual["environment"], changed


def usual_look() -> dict[str, Any]:
    """Three processes in which nothing was set: their median times."""
    looks: list[dict[str, Any]] = []
    for _ in range(3):
        found = child("", None)
        if isinstance(found, str):
            sys.exit(found)
        looks.append(found)
    usual = looks[0]
    for title in PROGRAMS:
        usual[title]["time"] = median(found[title]["time"] for found in looks)
    return usual


def main(names: list[str]) -> int:
    """Try them, and print the table."""
    usual, unnamed = usual_look(), []
    print(f"jax {jax.__version__}\n\n| option | tried | environment | changed |\n|---|---|---|---|")
    for name, value in sorted(jax.config.values.items()):
        if names and name not in names:
            continue
        tried = other_value(name, value)
        found = "no other value is known" if tried is None else changed_by(usual, name, tried)
        if isinstance(found, str):
            print(f"| {name} | {tried} | | not run: {found} |", flush=True)
            continue
        named, changed = found
        if changed and not named:
            unnamed.append(name)
        shown = ", ".join(changed) or "nothing"
        print(
            f"| {name} | {tried} | {'named' if named else '**not named**' if changed else 'excused'} | {shown} |",
            flush=True,
        )
    print(f"\nchanged something and not named: {', '.join(unnamed) or 'none'}")
    return bool(unnamed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(look(*json.loads(sys.argv[2]))))
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
