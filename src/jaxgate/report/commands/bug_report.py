"""The text of a bug report around a reproduction file."""

from __future__ import annotations

from jaxgate.model import Baseline, Facts, Reduced

_TITLES = {
    "temp_bytes": "temporary memory",
    "xla_flops": "FLOPs",
    "matmul_flops": "FLOPs of matrix products",
    "collective_bytes": "bytes of collectives",
    "output_bytes": "bytes of results",
    "argument_bytes": "bytes of arguments",
    "transcendentals": "transcendentals",
    "stablehlo_ops": "operations",
    "constant_bytes": "bytes of constants",
}
"""Facts that a title names, where more of them is worse."""
_VERSIONS = ("jax", "jaxlib", "python", "XLA_FLAGS")


def bug_report(
    baseline: Baseline, now: Baseline, file: str, printed: str, *, name: str, reduced: Reduced | None = None
) -> str:
    """Write it: a title, what was seen with which versions, how to see it, the file itself.

    Args:
        baseline: What was accepted.
        now: What is seen now.
        file: The text of the file.
        printed: What it printed when it ran here.
        name: The file's name.
        reduced: What the programs were reduced to, if they were: it says what they show, and with which jax.
    """
    same = baseline.fingerprints.program == now.fingerprints.program
    before, after = (
        ", ".join(_version(side, key) for key in _VERSIONS if side.environment.get(key)) for side in (baseline, now)
    )
    if reduced is not None:
        before, after = (f"jax {version}" for version in reduced.versions)
    kind = "the same program" if same else "two versions of a program"
    parts = [
        f"# {_title(baseline.facts, now.facts, same=same) if reduced is None else _shown(reduced, same=same)}",
        f"Seen with {kind} on {now.hardware.platform}: before with {before}; now with {after}."
        if before != after
        else f"Seen with {kind} on {now.hardware.platform}, {now.environment.get('jax', '')}: {after}.",
        *(
            ["Both sides of the file are one program: run it with both versions and compare the columns."]
            if same and before != after
            else []
        ),
        f"## To reproduce\n\nSave the file below as `{name}`; it needs jax and NumPy only:\n\n    pip install jax numpy\n    python {name}",
        f"## What it prints here\n\n```\n{printed.rstrip()}\n```",
        f"## The file\n\n```python\n{file.rstrip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _version(side: Baseline, key: str) -> str:
    return f"{key} {side.environment[key]}"


def _shown(reduced: Reduced, *, same: bool) -> str:
    """What a smaller program shows, without how that was decided."""
    what = "The same program" if same else "A changed program"
    return f"{what}: {reduced.shows.partition(';')[0].partition(' (at least')[0]}"


def _title(baseline: Facts, now: Facts, *, same: bool) -> str:
    """Name the fact that grew most; what it grew to."""
    grown: list[tuple[float, str, int, int]] = []
    for fact, words in _TITLES.items():
        theirs, ours = getattr(baseline, fact), getattr(now, fact)
        if theirs is not None and ours is not None and ours > theirs:
            grown.append((ours / max(theirs, 1), words, theirs, ours))
    what = "The same program" if same else "A changed program"
    lost = (baseline.aliased_bytes or 0) - (now.aliased_bytes or 0)
    if grown:
        ratio, words, theirs, ours = max(grown)
        return f"{what} has {ratio:.3g} x the {words}: {theirs:,} before, {ours:,} now"
    if lost > 0:
        return f"{what} reuses {lost:,} bytes less of its arguments"
    return f"{what} differs in time or results"
