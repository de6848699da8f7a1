"""A calibration as a picture: for each case what is seen of a slow-down, and how identical programs differ."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from jaxgate.model import CaseCalibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN = 10.0
ROW_IN = 1.55
EDGES_IN = 1.0
DPI = 130
SCALED, REAL, IDENTICAL = "#0072b2", "#d55e00", "#555555"
MIN_SPAN = 0.05
STYLE = {"font.size": 8.0, "axes.titlesize": 9.0, "axes.spines.top": False, "axes.spines.right": False}


def draw(rows: Sequence[CaseCalibration], *, where: str) -> bytes:
    """Draw a calibration: two panels for each case.

    Left, the share of duels called SLOWER over the slow-down that was planted: scaled times as a line, extra
    work as points at its measured size. Right, one point for each duel of identical programs, with the margin.

    Args:
        rows: The cases; one at least.
        where: Hardware and environment, for the title.

    Returns:
        A PNG. Nothing of matplotlib's global state is used or changed.

    Raises:
        ModuleNotFoundError: If matplotlib is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a library that only draws; pytest may have made errors of them
        import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - as above
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above

        with mpl.rc_context(STYLE):
            height = EDGES_IN + ROW_IN * len(rows)
            figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI)
            axes = figure.subplots(len(rows), 2, squeeze=False)
            for (left, right), row in zip(axes, rows, strict=True):
                _power(left, row)
                _identical(right, row)
            for column, label in enumerate(("slow-down planted", "median ratio of a duel of identical programs")):
                axes[-1][column].set_xlabel(label)
            figure.suptitle(f"jaxgate: calibration on {where}", x=0.01, y=1 - 0.1 / height, ha="left", va="top")
            handles, labels = axes[0][0].get_legend_handles_labels()
            figure.legend(
                handles, labels, loc="upper left", bbox_to_anchor=(0, 1 - 0.28 / height), ncols=3, frameon=False
            )
            figure.tight_layout(rect=(0, 0, 1, 1 - 0.45 / height), h_pad=1.2, w_pad=2.0)
            buffer = BytesIO()
            FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def _power(axes: Axes, row: CaseCalibration) -> None:
    shares = [plant.share for plant in row.plants]
    axes.plot(
        [0.0, *shares],
        [row.alarms / row.duels, *(plant.scaled for plant in row.plants)],
        color=SCALED,
        marker="o",
        markersize=3,
        label="scaled times",
    )
    real = [(plant.really, plant.seen) for plant in row.plants if plant.really is not None and plant.seen is not None]
    axes.plot(
        [size for size, _ in real],
        [seen for _, seen in real],
        color=REAL,
        marker="D",
        markersize=5,
        linestyle="none",
        label="extra work, at its measured size",
    )
    axes.axvline(row.margin, color=IDENTICAL, linewidth=0.8, linestyle=":", label="margin")
    axes.set_title(row.case, loc="left")
    axes.set_ylabel("called SLOWER")
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0, 0.5, 1])
    axes.set_xticks([0.0, *shares])
    sizes = [0.0, *shares, *(size for size, _ in real)]
    axes.set_xlim(min(sizes) - 0.005, max(sizes) + 0.005)
    _percent(axes.xaxis)
    _percent(axes.yaxis)


def _identical(axes: Axes, row: CaseCalibration) -> None:
    """One point for each duel, spread over the height in the order they were run."""
    heights = [(place + 0.5) / row.duels for place in range(row.duels)]
    axes.axvspan(1 / (1 + row.margin), 1 + row.margin, color=IDENTICAL, alpha=0.12, linewidth=0)
    axes.axvline(1, color=IDENTICAL, linewidth=0.8)
    axes.plot(row.ratios, heights, color=SCALED, marker="o", markersize=3, linestyle="none", alpha=0.7, clip_on=False)
    span = max(MIN_SPAN, *(abs(ratio - 1) * 1.1 for ratio in row.ratios), row.margin * 1.1)
    axes.set_xlim(1 - span, 1 + span)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.set_title(
        f"{row.duels} duels, {row.alarms} false alarms, floor {row.floor:.1%}, margin {row.margin:.1%} (grey)",
        loc="left",
    )


def _percent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415 - as above

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
