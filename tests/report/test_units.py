"""Numbers for the eye: three digits, the right unit, and never two different numbers that look alike."""

import pytest

from jaxgate.model.computation import Amount
from jaxgate.report.units import show, show_pair, show_rate, show_ratio, show_share


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("temp_bytes", 0, "0 B"),
        ("temp_bytes", 1, "1 B"),
        ("temp_bytes", 276, "276 B"),
        ("temp_bytes", 999, "999 B"),
        ("temp_bytes", 1000, "1 kB"),
        ("temp_bytes", 3140, "3.14 kB"),
        ("temp_bytes", 31_400, "31.4 kB"),
        ("temp_bytes", 314_159, "314 kB"),
        ("temp_bytes", 1_500_000, "1.5 MB"),
        ("temp_bytes", 100_000_000, "100 MB"),
        ("temp_bytes", 141_000_000_000, "141 GB"),
        ("temp_bytes", -2048, "-2.05 kB"),
        ("run_ns", 500.0, "500 ns"),
        ("run_ns", 1500.0, "1.5 µs"),
        ("run_ns", 12_340_000, "12.3 ms"),
        ("compile_ns", 2_000_000_000, "2 s"),
        ("compile_ns", 90_000_000_000, "90 s"),
        ("matmul_flops", 12, "12 FLOP"),
        ("matmul_flops", 262_144, "262 kFLOP"),
        ("matmul_flops", 1_048_576, "1.05 MFLOP"),
        ("matmul_flops", 2_000_000_000, "2 GFLOP"),
        ("xla_flops", 3_500_000_000_000, "3.5 TFLOP"),
        # rounding up takes the next unit
        ("temp_bytes", 999_999, "1 MB"),
        ("temp_bytes", 999_500_000, "1 GB"),
        ("run_ns", 999.7, "1 µs"),
        ("run_ns", 999_999_999, "1 s"),
        ("matmul_flops", 999_999_999_999, "1 TFLOP"),
        ("temp_bytes", 9_999, "10 kB"),
        ("temp_bytes", 99_990, "100 kB"),
        # counts are written in full, with decimals only where they have some
        ("traces", 1, "1"),
        ("sampled_compiles", 0, "0"),
        ("stablehlo_ops", 1234, "1,234"),
        ("stablehlo_ops", 80.0, "80"),
        ("host_callbacks", 1234567, "1,234,567"),
        ("traces", 0.5, "0.50"),
        ("traces", 1.25, "1.25"),
        # None is never printed as zero
        *[(quantity, None, "unknown") for quantity in ("temp_bytes", "run_ns", "traces")],
    ],
)
def test_the_unit_is_the_last_word_of_the_name(quantity, value, text):
    """Bytes, times and work are scaled by thousands and keep three digits; counts have no unit."""
    assert show(quantity, value) == text


@pytest.mark.parametrize(
    ("quantity", "now", "against", "texts"),
    [
        ("temp_bytes", 40_000, 20_000, ("40 kB", "20 kB")),
        ("temp_bytes", 20_000, 20_000, ("20 kB", "20 kB")),
        ("temp_bytes", 20_001, 20_000, ("20,001 B", "20,000 B")),
        ("matmul_flops", 1_000_001, 1_000_000, ("1,000,001 FLOP", "1,000,000 FLOP")),
        ("compile_ns", 2_000_000_001, 2_000_000_000, ("2,000,000,001 ns", "2,000,000,000 ns")),
        ("traces", 2, 1, ("2", "1")),
        ("temp_bytes", None, 1000, ("unknown", "1 kB")),
        ("temp_bytes", 1000, None, ("1 kB", "unknown")),
        ("temp_bytes", None, None, ("unknown", "unknown")),
    ],
)
def test_two_different_numbers_look_different(quantity, now, against, texts):
    """Numbers that three digits would make alike are written in full."""
    assert show_pair(quantity, now, against) == texts


@pytest.mark.parametrize(
    ("now", "against", "text"),
    [
        (2, 1, "2.00 ×"),
        (20_000, 50_000, "0.40 ×"),
        (1, 3, "0.33 ×"),
        (0, 5, "0.00 ×"),
        (99, 1, "99.00 ×"),
        (100, 1, "100 ×"),
        (1_234_567, 1, "1,234,567 ×"),
        (5, 0, ""),
        (0, 0, ""),
        (None, 5, ""),
        (5, None, ""),
    ],
)
def test_ratios(now, against, text):
    """Today's number over the other one; nothing where there is no ratio."""
    assert show_ratio(now, against) == text


@pytest.mark.parametrize(
    ("amount", "run_ns", "text"),
    [
        (Amount(count=256, unit="samples"), 65_900, "3.88 M samples/s"),
        (Amount(count=1, unit="steps"), 2e9, "0.5 steps/s"),
        (Amount(count=128, unit="tokens"), 1e6, "128 k tokens/s"),
        (Amount(count=999_999, unit="paths"), 1e9, "1 M paths/s"),
        (Amount(count=65_536, unit="B", bus_factor=1.75), 100_000, "655 MB/s, bus 1.15 GB/s"),
        (Amount(count=65_536, unit="B", bus_factor=1), 100_000, "655 MB/s, bus 655 MB/s"),
        (Amount(count=1, unit="samples"), 0, "rate unknown"),
    ],
)
def test_a_rate_is_read_at_a_glance(amount, run_ns, text):
    """Three digits and a prefix; a collective has its algorithm and its bus bandwidth (nccl-tests)."""
    assert show_rate(amount, run_ns) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.4149, "41 %"), (1.0, "100 %"), (0.0512, "5.1 %"), (0.00321, "0.32 %"), (0, "0 %")]
)
def test_a_share_has_two_digits(share, text):
    assert show_share(share) == text


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": -1}, {"count": float("inf")}, {"unit": " "}])
def test_an_amount_that_has_no_rate_is_refused(wrong):
    with pytest.raises(ValueError, match="expected a positive number of units"):
        Amount(**{"count": 1, "unit": "samples", **wrong})
