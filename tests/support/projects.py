"""Test files of projects that several tests gate, and their settings."""

NO_OTHERS = ("-p", "no:hypothesispytest", "-p", "no:jaxtyping", "-p", "no:unraisableexception")
"""Without other people's plugins: they say nothing in these projects, and import what takes a process 0.3 s. Without pytest's search
for exceptions that nobody raised: it collects garbage ten times at the end of a process, for 0.5 s among all that JAX holds."""
SETTINGS = f'[tool.pytest]\npythonpath = ["."]\naddopts = {[*NO_OTHERS]}\n'


def model(arguments: str = "jnp.ones(8)", /, **functions: str) -> str:
    """A test file: for each name a function of ``x`` that returns this expression, and a test that gates it."""
    tests = (
        f"\ndef {name}(x):\n    return {result}\n\ndef test_{name}(gate):\n    gate({name}, {arguments})\n"
        for name, result in functions.items()
    )
    return "\nimport jax, jax.numpy as jnp\n" + "".join(tests)


TWO = model(first="x * 2", second="x + 1")
