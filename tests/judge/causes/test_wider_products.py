"""Products of wider numbers than before: told by their labels, red by themselves, with the line of each."""

import pytest
from support.factories import CASE, FINGERPRINTS, measurement, record

from jaxgate.judge.causes.program_causes import WiderProduct, wider_products
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Culprits

NARROW, WIDE = "bfloat16[8,64] x bfloat16[64,64]", "float32[8,64] x float32[64,64]"
MIXED = "bfloat16[8,64] x float32[64,64]"


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        ({WIDE: 3}, {NARROW: 3}, [WiderProduct(NARROW, WIDE, 3)]),
        ({WIDE: 3, NARROW: 2}, {NARROW: 4, WIDE: 1}, [WiderProduct(NARROW, WIDE, 2)]),
        ({MIXED: 1}, {NARROW: 1}, [WiderProduct(NARROW, MIXED, 1)]),
        ({"complex64[4] x complex64[4]": 1}, {"float16[4] x float16[4]": 1}, 1),
        ({"float32[4] x float32[4] each turn": 1}, {"bfloat16[4] x bfloat16[4] each turn": 1}, 1),
        ({NARROW: 3}, {WIDE: 3}, []),  # narrower
        ({WIDE: 3}, {WIDE: 2}, []),  # more of them: the FLOPs say so
        ({WIDE: 3}, {"bfloat16[8,32] x bfloat16[32,64]": 3}, []),  # of other shapes
        ({"complex64[4] x complex64[4]": 1}, {"float32[4] x float32[4]": 1}, []),  # each part is as wide
        ({"int32[4] x int32[4]": 1}, {"int8[4] x int8[4]": 1}, []),
        ({}, {}, []),
    ],
)
def test_which_products_became_wider(now, before, found):
    """As many as there are fewer of one type and more of another, of the same shapes."""
    seen = wider_products(now, before)
    assert (len(seen) if isinstance(found, int) else seen) == found


def test_a_lost_bfloat16_is_red_though_memory_shrinks():
    """The case that read IMPROVED: fewer temporaries, and every product twice as wide."""
    changed = {"fingerprints": FINGERPRINTS.__class__(source="s1", program="1" * 32, options="", inputs="i0")}
    now = measurement(
        matmuls={WIDE: 3}, facts={"temp_bytes": 1}, culprits=Culprits(lines={WIDE: "model.py:7"}), **changed
    )
    verdict = judge(CASE, (), now, record(matmuls={NARROW: 3}), strict=True)
    assert verdict.status is Status.REGRESSED
    assert (verdict.worst.name, verdict.worst.now, verdict.worst.against) == ("wider_products", 3, 0)
    assert verdict.causes[0].text == f"products of wider floats: {NARROW} → {WIDE} at model.py:7"
