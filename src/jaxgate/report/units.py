"""Numbers as people read them: the unit is the last word of the quantity's name."""

from __future__ import annotations

import math

from jaxgate.model.computation import Amount

_SCALES = {
    "ns": ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")),
    "uj": ((1e-3, "nJ"), (1, "µJ"), (1e3, "mJ"), (1e6, "J"), (1e9, "kJ")),
    "bytes": ((1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")),
    "flops": ((1, "FLOP"), (1e3, "kFLOP"), (1e6, "MFLOP"), (1e9, "GFLOP"), (1e12, "TFLOP")),
}

_PREFIXES = ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
_COARSE_RATIO = 100
_WHOLE_PERCENT = 10


def show(quantity: str, value: float | None) -> str:
    """Format a value with three digits and its unit: ``show("temp_bytes", 3140)`` is ``3.14 kB``."""
    if value is None:
        return "unknown"
    scales = _SCALES.get(quantity.rpartition("_")[2])
    if scales is None:
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    factor, unit = _scale(value, scales)
    return f"{_digits(value / factor, whole=factor == scales[0][0])} {unit}"


def show_rate(amount: Amount, run_ns: float) -> str:
    """What is done per second: ``3.88 M samples/s``; of a collective its algorithm and bus bandwidth, in ``GB/s``."""
    if run_ns <= 0:
        return "rate unknown"
    rates = [amount.count * 1e9 / run_ns]
    if amount.bus_factor is not None:
        rates.append(rates[0] * amount.bus_factor)
    return ", bus ".join(show_rate_of(rate, amount.unit) for rate in rates)


def show_share(share: float) -> str:
    """A share of something, in per cent: ``41 %``, ``0.32 %``."""
    percent = share * 100
    return f"{percent:.0f} %" if percent >= _WHOLE_PERCENT else f"{percent:.2g} %"


def show_rate_of(rate: float, unit: str) -> str:
    """A rate in a unit: ``3.88 M samples/s``, ``12.1 GB/s``."""
    return f"{show_amount_of(rate, unit)}/s"


def show_amount_of(count: float, unit: str) -> str:
    """How much of a unit: ``3.88 M samples``, ``12.1 GB``."""
    factor, prefix = _scale(count, _PREFIXES)
    glued = prefix + unit if unit == "B" else f"{prefix} {unit}".strip()
    return f"{_digits(count / factor, whole=False)} {glued}"


def _scale(value: float, scales: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest unit in which three digits of a value do not begin with a zero."""
    return next(((f, u) for f, u in reversed(scales) if float(f"{abs(value):.3g}") >= f), scales[0])


def _digits(scaled: float, *, whole: bool) -> str:
    if not math.isfinite(scaled):
        return str(scaled)
    digits = 0 if whole else max(0, 3 - len(str(int(abs(scaled)))))
    text = f"{scaled:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_pair(quantity: str, now: float | None, against: float | None) -> tuple[str, str]:
    """Format two values; in full where three digits would make two different numbers look alike."""
    left, right = show(quantity, now), show(quantity, against)
    if left == right and now != against and now is not None and against is not None:
        unit = _SCALES.get(quantity.rpartition("_")[2], ((1, ""),))[0][1]
        return f"{now:,.0f} {unit}".strip(), f"{against:,.0f} {unit}".strip()
    return left, right


def nearest_whole(quantity: str, limit: float | None, *, up: bool) -> float | None:
    """The last whole number within a limit, of what is counted: of 417.5 operations 417 are allowed. Others stay."""
    if limit is None or quantity.rpartition("_")[2] in _SCALES:
        return limit
    return math.ceil(limit) if up else math.floor(limit)


def show_ratio(now: float | None, against: float | None) -> str:
    """``0.40 ×``; empty where there is no ratio."""
    if now is None or not against:
        return ""
    ratio = now / against
    return f"{ratio:,.{2 if ratio < _COARSE_RATIO else 0}f} ×"
