"""The policy as a page: each fact and phase, which way is worse, how far it may move, where it gates and why."""

from __future__ import annotations

from collections.abc import Iterable

from jaxgate.model.policy import FactPolicy
from jaxgate.report.units import show

_PAGE = """\
# What gates, and by how much it may move

Made by `jaxgate policy > docs/policy.md`; a test holds it against the code. Bytes are those of one device. `None` (a
backend that does not report it) is never taken for zero: a fact that the baseline has and today's measurement lacks is
INVALID.

## Facts against the baseline

A fact is worse beyond *baseline × (1 + share) + amount* (or below, where higher is better).

{facts}

`state_bytes` (arguments + outputs − aliased) and `peak_bytes` (state + temporaries) are sums of these, for claims. They
mean the same on every backend: no call needs more than `peak_bytes`, and where a compiler lets temporaries share the
memory of outputs it needs less.

`wider_products` may not rise above 0: matrix products of the same shapes as the baseline's and of wider numbers (`bfloat16`
that became `float32`), though memory may shrink by it.

Every case also has claims without a baseline: `traces`, `lowerings` and `compiles` are as many as expected (1) over
three threaded steps, `sampled_traces` and `sampled_compiles` are 0, and where anything is donated `lost_bytes` is 0.

A workload may have a tolerance of its own, with its reason, which the text of a red test shows:

    gate(step, state, batch, tolerances=[Tolerance(fact="temp_bytes", relative=0.2, why="the autotuner picks a workspace")])

## Phases against the baseline

Numbers from another day, so they gate only on the hardware that recorded them, scaled by how much slower the machine
runs plain Python at that moment, and a red one is measured again in two fresh processes. An identical program in the same
environment can only be traced more slowly, and called more slowly by Python: then the other phases are not held
against anything. Tracing and lowering are
Python in one thread, and are timed by what that thread ran: other processes do not count.

{stored}

## Phases between two environments (`--perf-against jax==…`)

The best launch of this environment against the worst one of the other.

{phases}
"""


def policy_page(facts: Iterable[FactPolicy], stored: Iterable[FactPolicy], between: Iterable[FactPolicy]) -> str:
    """The whole page in Markdown."""
    return _PAGE.format(facts=_table(facts), stored=_table(stored), phases=_table(between))


def _table(policies: Iterable[FactPolicy]) -> str:
    rows = [
        f"| `{policy.name}` | {policy.better} | {_may_move(policy)} | {policy.where} | {policy.why} |"
        for policy in policies
    ]
    return "\n".join(["| what | better | may move | where | why |", "|---|---|---|---|---|", *rows])


def _may_move(policy: FactPolicy) -> str:
    parts = [f"{policy.relative:.0%}"] if policy.relative else []
    parts += [show(policy.name, policy.absolute)] if policy.absolute else []
    return " and ".join(parts) or "not at all"
