"""``jaxgate init``: a first test, what git should know of baselines, and a workflow, written into a project."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.keep.files import read_text, write_atomic

TEST = '''"""A first gate: put a function of your own and real arguments in the place of this one."""

import jax
import jax.numpy as jnp


def train_step(params, batch):
    def loss_of(params):
        hidden = jnp.tanh(batch["inputs"] @ params["first"])
        return jnp.mean((hidden @ params["second"] - batch["targets"]) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda param, grad: param - 0.1 * grad, params, grads), loss


def test_train_step(gate):
    first, second = jax.random.split(jax.random.key(0))
    params = {"first": jax.random.normal(first, (8, 32)), "second": jax.random.normal(second, (32, 1))}
    batch = {"inputs": jnp.ones((16, 8)), "targets": jnp.ones((16, 1))}
    gate(train_step, params, batch, donate="params")
'''
ATTRIBUTES = """# Baselines are read by programs: no line endings are changed, and reviews fold them.
baselines/** -text linguist-generated=true
"""
WORKFLOW = """# Gates pull requests. Facts are the same on any machine; times of a shared one may stay undecided.
name: perf

on:
  pull_request:
  push:
    branches: [main]

permissions:
  contents: read

jobs:
  gate:
    runs-on: ubuntu-24.04
    timeout-minutes: 40
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          fetch-depth: 0 # the merge base, and which baselines the branch edits
          persist-credentials: false
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with:
          python-version: "3.12"
      - name: Install # what your tests import, and jaxgate: name its repository and commit, it is not published yet
        run: pip install "jaxgate @ git+https://github.com/OWNER/jaxgate@FULL_SHA"
      - name: Gate
        run: jaxgate gate --perf-time-limit=1500 --perf-max-undecided=1
      - name: Keep the bundles
        if: ${{ always() }}
        uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0
        with:
          name: perf-artifacts
          path: perf-artifacts/
"""
FILES: Mapping[str, str] = {
    "perf/test_first.py": TEST,
    ".gitattributes": ATTRIBUTES,
    ".github/workflows/perf.yml": WORKFLOW,
}
"""What is written, by its place in a project."""
SHARED = frozenset({".gitattributes"})
"""Files that may have other lines: ours are added to them."""
NEXT = (
    'pytest perf --perf-update --perf-why "first baselines"',
    'git add perf baselines .gitattributes .github && git commit -m "Gate performance"',
    "CI=true pytest perf",
)


Ask = Callable[[str], str]


def init(folder: Path, *, ask: Ask | None = None) -> int:
    """Write what a project lacks, ask before a file is replaced, and print the next commands.

    Without ``ask`` nothing is replaced.

    Returns:
        The exit code: 1 if a file could not be read or written.
    """
    try:
        files = {}
        for name, text in FILES.items():
            files[name] = _put(folder / name, text, ask, shared=name in SHARED)
            say(f"{files[name]:<9} {name}")
    except (OSError, ValueError) as error:
        return refuse("init", f"expected files that can be read and written, found {error}", 1)
    tell(files=files, next=list(NEXT))
    say("Next:")
    for command in NEXT:
        say(f"  {command}")
    return 0


def asker() -> Ask | None:
    """How to ask somebody; ``None`` where nobody sits at a terminal."""
    return input if sys.stdin.isatty() and sys.stdout.isatty() else None


def _put(file: Path, text: str, ask: Ask | None, *, shared: bool) -> str:
    """Write one file, and say in a word what came of it."""
    before = read_text(file) if file.exists() or file.is_symlink() else ""
    if text in before:
        return "is there"
    if before and shared:
        write_atomic(file, f"{before.rstrip()}\n\n{text}".encode())
        return "added to"
    if before and not _agrees(ask, file):
        return "kept"
    write_atomic(file, text.encode())
    return "replaced" if before else "wrote"


def _agrees(ask: Ask | None, file: Path) -> bool:
    """Whether somebody wants a file replaced; Ctrl-C and the end of the input are no."""
    if ask is None:
        return False
    try:
        return ask(f"{file.name} has something else: replace it? [y]es [n]o ").strip().lower() in {"y", "yes"}
    except (KeyboardInterrupt, EOFError):
        return False
