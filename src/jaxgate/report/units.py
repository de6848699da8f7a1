"""Numbers as people read them: the unit is the last word of the quantity's name."""

from __future__ import annotations

_SCALES = {
    "ns": ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")),
    "bytes": ((1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")),
    "flops": ((1, "FLOP"), (1e3, "kFLOP"), (1e6, "MFLOP"), (1e9, "GFLOP"), (1e12, "TFLOP")),
}


_COARSE_RATIO = 100


def show(quantity: str, value: float | None) -> str:
    """Format a value with three digits and its unit: ``show("temp_bytes", 3140)`` is ``3.14 kB``."""
    if value is None:
        return "unknown"
    scales = _SCALES.get(quantity.rpartition("_")[2])
    if scales is None:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    factor, unit = next(((f, u) for f, u in reversed(scales) if float(f"{abs(value):.3g}") >= f), scales[0])
    scaled = value / factor
    digits = 0 if factor == 1 else max(0, 3 - len(str(int(abs(scaled)))))
    text = f"{scaled:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def show_pair(quantity: str, now: float | None, against: float | None) -> tuple[str, str]:
    """Format two values; in full where three digits would make two different numbers look alike."""
    left, right = show(quantity, now), show(quantity, against)
    if left == right and now != against and now is not None and against is not None:
        unit = _SCALES.get(quantity.rpartition("_")[2], ((1, ""),))[0][1]
        return f"{now:,.0f} {unit}".strip(), f"{against:,.0f} {unit}".strip()
    return left, right


def show_ratio(now: float | None, against: float | None) -> str:
    """``0.40 ×``; empty where there is no ratio."""
    if now is None or not against:
        return ""
    ratio = now / against
    return f"{ratio:,.{2 if ratio < _COARSE_RATIO else 0}f} ×"
