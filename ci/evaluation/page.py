"""The page of the evaluation: what must hold, the gate beside its peers, and two pictures. Figures come from kept results only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ci.evaluation.result import Result

COMPARED = frozenset({"planted", "peers", "elsewhere"})
"""The parts from which the gate and its peers are compared."""
KINDS = {
    "look_different": "looks different",
    "other_data": "other data",
    "same": "the same again",
    "elsewhere": "another machine",
}
"""The kinds of false alarms, as results and as the page call them."""
CAUGHT, SEEN = "evaluation-peers.png", "evaluation-power.png"
COLORS = ("#0072b2", "#d55e00")

Kept = Mapping[str, Mapping[str, Result]]
"""Results by Python line, such as ``py311``, and part."""

_HEAD = """# How good the gate is, beside what people would use instead

Written by `make evaluate ARGS="--page docs/evaluation.md"`: every figure was measured by it. All tools saw the same work in the same
hour: the small programs of `tests/faults/programs`, with a mistake, with a change that only looks like one, and as they are.

- *caught*: mistakes that turn red. *named*: red ones whose first clause is the planted cause; the others name none.
- *looks different*: the same programs renamed, reordered or spelled differently: each alarm is false.
- *other data*: the same programs with other numbers of the same shapes: each alarm is false.
- *the same again*: the same text, looked at again some minutes later: each alarm is false.
- *another machine*: the same text, recorded on all cores and looked at again on one of them, which stands for a smaller machine.
  jaxgate got the baselines as those of other hardware.
- The rules of others decide on calls timed in a loop for half a second, on the text of the executable, or on XLA's sum of its
  memory. What they would need beside that (a store, a place in CI, a comment) is not counted. CodSpeed compares on its server, so it
  is not here. jaxgate's own row judges facts, compiled with little optimisation of machine code, which no fact speaks of; what is
  no identical program it times as well, in duels of about 2 s that are not in its seconds: see *power*.
- A mistake that makes a program fail counts as caught for everybody. A rule that alarms on a third of the unchanged programs catches a
  third of the mistakes by chance.
- The mistakes are ours, of kinds that jaxgate looks for; [regressions.md](regressions.md) has those that other people reported.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one tool did: pairs of a count and the number that it is of."""

    tool: str  # its name
    caught: Sequence[int]  # mistakes that turned red
    named: Sequence[int] | None  # red ones whose first clause is the planted cause; `None` if the tool names none
    # false alarms, by kind; `None` where no clock was asked, as the programs were identical
    false: Mapping[str, Sequence[int] | None]
    seconds: float  # for one program

    @property
    def alarms(self) -> tuple[int, int]:
        """False alarms of all kinds."""
        pairs = [pair for pair in self.false.values() if pair is not None]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def page(kept: Kept, wanted: Sequence[str]) -> str:
    """The page, in Markdown, of what was measured, by Python line and part; wanted parts that a line lacks are named.

    Raises:
        ValueError: If nothing was measured, or parts of one line at several commits, with other versions or elsewhere.
    """
    if not any(kept.values()):
        raise ValueError("nothing was measured; run: make evaluate")
    lines = (line for python, parts in kept.items() if parts for line in _of_line(python, parts, wanted))
    return "\n".join([_HEAD, *lines])


def _of_line(python: str, parts: Mapping[str, Result], wanted: Sequence[str]) -> list[str]:
    first, *others = parts.values()
    if other := next((result for result in others if result.of != first.of), None):
        raise ValueError(
            f"expected parts of one commit, machine and set of versions, found {first.part} of {dict(first.of)} and "
            f"{other.part} of {dict(other.of)}; run: make evaluate"
        )
    of = ", ".join(f"{name} {value}" for name, value in first.of.items() if name != "machine")
    date = max(result.date for result in parts.values())
    lines = [f"## Python {python[2]}.{python[3:]}", "", f"{date}, {first.of['machine']}: {of}.", ""]
    if set(parts) >= COMPARED:
        rows = compared(parts)
        lines += [*table(rows), "", *where_not(rows), ""]
        lines += [f"![What each tool caught, and its false alarms]({CAUGHT})", ""] if python == "py311" else []
    if "power" in parts and python == "py311":
        lines += [f"![Share of duels that saw extra work of a known size]({SEEN})", ""]
    if left := [part for part in wanted if part not in parts]:
        lines += [f"Not measured: {', '.join(left)}.", ""]
    lines += ["| part | what must hold | held |", "|---|---|---|"]
    for part, result in parts.items():
        lines += [f"| {part} | {each.what} | {'yes' if each.held else '**no**'} |" for each in result.requirements]
    lines += ["", f"Took {sum(result.seconds for result in parts.values()) / 60:.0f} minutes.", ""]
    return lines


def compared(parts: Mapping[str, Result]) -> list[Row]:
    """What the gate and each of its peers did with the same programs, the gate first."""
    planted, peers, elsewhere = (parts[name].rows for name in ("planted", "peers", "elsewhere"))
    gate = Row(
        tool="jaxgate",
        caught=planted["small"],
        named=planted["small_blamed"],
        false={
            "look_different": _others(planted["unchanged"]),
            "other_data": _others(planted["other_data"]),
            "same": None,
            "elsewhere": elsewhere["jaxgate"],
        },
        seconds=planted["seconds_a_program"],
    )
    return [
        gate,
        *(
            Row(
                tool=rule,
                caught=found["caught"],
                named=None,
                false={**{kind: found[kind] for kind in KINDS if kind in found}, "elsewhere": elsewhere["rules"][rule]},
                seconds=peers["seconds_a_program"],
            )
            for rule, found in peers["rules"].items()
        ),
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """The gate and its peers, a row each."""
    lines = [
        f"| tool | caught | named | {' | '.join(f'false alarms: {name}' for name in KINDS.values())} | s a program |",
        f"|{'---|' * (len(KINDS) + 4)}",
    ]
    for place, row in enumerate(rows):
        false = ("none: identical" if pair is None else _of(pair) for pair in (row.false[kind] for kind in KINDS))
        tool = row.tool if place else f"**{row.tool}**"
        named = "–" if row.named is None else _of(row.named)
        lines.append(f"| {tool} | {_of(row.caught)} | {named} | {' | '.join(false)} | {row.seconds:.1f} |")
    return lines


def where_not(rows: Sequence[Row]) -> list[str]:
    """The rules that the gate is not better than, in mistakes caught and in false alarms; one line where there is none."""
    gate, *others = rows
    lines = []
    for row in others:
        if _rate(row.caught) >= _rate(gate.caught):
            lines.append(
                f"- {row.tool} catches as many mistakes: {_rate(row.caught):.0%} against {_rate(gate.caught):.0%}."
            )
        if _rate(row.alarms) <= _rate(gate.alarms):
            lines.append(
                f"- {row.tool} has as few false alarms: {_rate(row.alarms):.1%} against {_rate(gate.alarms):.1%}."
            )
    return lines or ["Against each of them: more mistakes caught, and fewer false alarms."]


def pictures(kept: Kept) -> dict[str, bytes]:
    """The two pictures, of the first Python line that has what they show."""
    drawn = {}
    for parts in kept.values():
        if set(parts) >= COMPARED and CAUGHT not in drawn:
            drawn[CAUGHT] = _caught(compared(parts))
        if "power" in parts and SEEN not in drawn:
            drawn[SEEN] = _seen(parts["power"].rows)
    return drawn


def _caught(rows: Sequence[Row]) -> bytes:
    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    axes = figure.subplots()
    places = range(len(rows), 0, -1)
    for shift, color, index, what in ((0.2, COLORS[0], 0, "mistakes caught"), (-0.2, COLORS[1], 1, "false alarms")):
        shares = [100 * _rate((row.caught, row.alarms)[index]) for row in rows]
        bars = axes.barh([place + shift for place in places], shares, height=0.38, color=color, label=what)
        axes.bar_label(bars, labels=[f"{share:.0f} %" for share in shares], padding=3, fontsize=9)
    axes.set_yticks(list(places), [row.tool.replace("`", "") for row in rows])
    axes.set_xlim(0, 112)
    axes.set_xlabel("% of the programs")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return _png(figure)


def _seen(power: Mapping[str, Any]) -> bytes:
    figure = Figure(figsize=(7, 3.4), dpi=120, layout="constrained")
    axes = figure.subplots()
    shares = {"nothing": power["false"], **power["seen"]}
    bars = axes.bar(
        list(shares),
        [100 * _rate(pair) for pair in shares.values()],
        color=[COLORS[1], *[COLORS[0]] * len(power["seen"])],
    )
    axes.bar_label(bars, labels=[_of(pair) for pair in shares.values()], padding=2, fontsize=9)
    axes.set_ylim(0, 112)
    axes.set_xlabel("extra work that was planted, share of the program's own time")
    axes.set_ylabel("% of duels called SLOWER")
    axes.spines[["top", "right"]].set_visible(False)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    FigureCanvasAgg(figure).print_png(written)
    return written.getvalue()


def _others(pair: Sequence[int]) -> list[int]:
    """The rest of a number, and the number."""
    return [pair[1] - pair[0], pair[1]]


def _of(pair: Sequence[int]) -> str:
    return f"{pair[0]} of {pair[1]}"


def _rate(pair: Sequence[int]) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0
