"""Causes in how a program is built: conditions, loops, routines, remat, larger arrays; and what only looks like one."""

import pytest
from support.factories import baseline, launched_program, measurement

from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.model.measurement import Culprits

ADD, DOT = "stablehlo.add 8x64xf32", "float32[8,64] x float32[64,64]"
RED = ("temp_bytes", "xla_flops", "run_ns")


def roots(now, before, red=RED, **changes):
    """What is said to be built otherwise, of two lists of operations."""
    known = baseline(operations=before, matmuls=changes.pop("products", {DOT: 3}))
    found = rank_causes(measurement(operations=now, **{"matmuls": {DOT: 3}} | changes), known, red)
    return [str(cause) for cause in found if cause.root]


CASE, SELECT = "stablehlo.case 64xf32", "stablehlo.select 8x64xf32"
BOTH = "a cond became a select, as under vmap, and all its branches run: stablehlo.case 1 → 0"


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ({SELECT: 2}, {CASE: 1}, [f"{BOTH}, {SELECT} 0 → 2 at model.py:4"]),
        ({"stablehlo.select 64xf32": 1}, {CASE: 1}, [f"{BOTH}, stablehlo.select 64xf32 0 → 1"]),
        ({SELECT: 2}, {"stablehlo.if 64xf32": 1}, [f"{BOTH.replace('case', 'if')}, {SELECT} 0 → 2 at model.py:4"]),
        ({"stablehlo.select 8x32xf32": 2}, {CASE: 1}, []),
        ({"stablehlo.select 8x64xi32": 2}, {CASE: 1}, []),
        ({SELECT: 2}, {CASE: 1, SELECT: 2}, []),
        ({SELECT: 2, CASE: 1}, {CASE: 1}, []),
        ({ADD: 2}, {CASE: 1}, []),
    ],
    ids=["batch", "where", "if", "of another shape", "of another type", "no select more", "cond still there", "gone"],
)
def test_a_condition_that_no_longer_chooses(now, before, said):
    """A select of what it gave, or of a batch of that, is it; any other select is not."""
    assert roots(now, before, culprits=Culprits(lines={SELECT: "model.py:4"})) == said


LOOP, ANY = {"stablehlo.while i32": 1}, "stablehlo.reduce i1"


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        ({**LOOP, ANY: 1, SELECT: 1}, LOOP, True),
        ({**LOOP, SELECT: 1}, LOOP, False),
        ({**LOOP, ANY: 1}, LOOP, False),
        ({**LOOP, ANY: 1, SELECT: 2}, {**LOOP, SELECT: 1}, False),
        ({ANY: 1, SELECT: 1}, LOOP, False),
        ({"stablehlo.while i32": 8, ANY: 8, SELECT: 8}, LOOP, False),
        ({**LOOP, ANY: 1, SELECT: 1}, {"stablehlo.while i32": 2}, True),
    ],
    ids=["batched", "a select", "a question", "selected before", "loop gone", "many loops", "of a loop of loops"],
)
def test_a_loop_that_goes_on_for_the_last_of_a_batch(now, before, found):
    """It asks whether any is left, and keeps what is done: a guess."""
    said = [text for text in roots(now, before) if "while_loop" in text]
    guess = "" if before["stablehlo.while i32"] > 1 else "perhaps "  # that there were more loops says it
    named = f"{guess}a while_loop, as under vmap, goes on until all of its batch are done: {SELECT} 0 → 1"
    assert said == ([named] if found else [])


def call(name, shape="32x32xf32"):
    """A library routine."""
    return f"stablehlo.custom_call @{name} {shape}"


CHOLESKY, LU, EIGH, SVD = (call(f"lapack_{name}_ffi") for name in ("spotrf", "sgetrf", "ssyevd", "sgesdd"))
SOLVE, SORT, TOP = call("lapack_strsm_ffi"), "stablehlo.sort 4x256xf32", "chlo.top_k 4x8xf32"


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ({EIGH: 1}, {CHOLESKY: 1}, "a dearer library routine: Cholesky factorisation 32x32xf32 → eigh 32x32xf32"),
        ({LU: 1}, {"stablehlo.cholesky 32x32xf32": 1}, "a dearer library routine: Cholesky factorisation 32x32xf32 → LU factorisation 32x32xf32"),
        ({call("cusolver_gesvdj_ffi"): 1}, {call("cusolver_syevd_ffi"): 1}, "a dearer library routine: eigh 32x32xf32 → SVD 32x32xf32"),
        ({SOLVE: 2, LU: 1}, {SOLVE: 1, CHOLESKY: 1}, "a dearer library routine: Cholesky factorisation 32x32xf32 → LU factorisation 32x32xf32"),
        ({LU: 1, SOLVE: 1}, {LU: 1, call("lapack_strsm_ffi", "32x4xf32"): 1}, "a dearer library routine: triangular solve 32x4xf32 → triangular solve 32x32xf32"),
        ({SORT: 1}, {TOP: 1}, "a dearer library routine: top_k 4x8xf32 → sort 4x256xf32"),
        ({SVD: 2}, {SVD: 1}, "a library routine that is called more often: SVD 32x32xf32 1 → 2"),
        ({SORT: 1}, {}, "a library routine that was not called before: sort 4x256xf32 0 → 1"),
        ({CHOLESKY: 1}, {EIGH: 1}, None),
        ({TOP: 1}, {SORT: 1}, None),
        ({SVD: 1}, {SVD: 1}, None),
        ({SORT: 1, "stablehlo.tanh 512x512xf32": 1}, {}, None),
        ({SORT: 1, "stablehlo.reshape 512x512xf32": 1}, {}, "a library routine that was not called before: sort 4x256xf32 0 → 1"),
        ({call("my_kernel"): 1}, {CHOLESKY: 1}, None),
        ({SORT: 1}, {CHOLESKY: 1}, "a library routine that was not called before: sort 4x256xf32 0 → 1"),
    ],
)  # fmt: skip
def test_a_library_routine_that_is_dearer(now, before, said):
    """By what it does for each matrix or element; a cheaper one, or one beside much other new work, is not to blame."""
    assert [text for text in roots(now, before) if "routine" in text] == ([said] if said else [])


@pytest.mark.parametrize(
    ("product", "leads"), [("float32[32,32] x float32[32,4]", True), ("float32[512,512] x float32[512,512]", False)]
)
def test_a_routine_leads_before_the_products_that_apply_what_it_gives(product, leads):
    """Eigenvectors are multiplied; products of other arrays are not the routine's."""
    facts = {"matmul_flops": 9_000_000}
    now = measurement(operations={EIGH: 1}, matmuls={DOT: 3, product: 2}, facts=facts)
    first = rank_causes(now, baseline(operations={CHOLESKY: 1}, matmuls={DOT: 3}), {"matmul_flops", "run_ns"})[0]
    assert str(first).startswith("a dearer library routine" if leads else product)


BARRIER, STORE = "stablehlo.optimization_barrier 8x64xf32", "stablehlo.dynamic_update_slice 6x8x64xf32"
READ = "stablehlo.dynamic_slice 1x8x64xf32"
SINE = "stablehlo.sine 8x64xf32"
REMAT = "less is recomputed, so more is kept: remat is lost or keeps more"


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ({SINE: 1}, {SINE: 2, BARRIER: 1}, [f"{REMAT} (optimization_barrier 1 → 0); stablehlo.sine 2 → 1"]),  # lost
        ({SINE: 1, BARRIER: 1}, {SINE: 2, BARRIER: 1}, [f"{REMAT}; stablehlo.sine 2 → 1"]),  # keeps more
        ({SINE: 1, STORE: 2, READ: 2}, {SINE: 2, STORE: 1, READ: 1}, [f"{REMAT}; stablehlo.sine 2 → 1"]),  # in a loop
        ({SINE: 1, STORE: 2}, {SINE: 2, STORE: 1}, []),  # stored, not read
        ({SINE: 1}, {SINE: 2}, []),  # less is computed
        ({SINE: 1, "stablehlo.tanh 8x64xf32": 1, BARRIER: 1}, {SINE: 2, BARRIER: 1}, []),  # something else instead
        ({SINE: 2, BARRIER: 1, STORE: 2}, {SINE: 2, BARRIER: 1}, []),  # as much
    ],
)
def test_remat_without_products(now, before, said):
    """Fewer costly operations tell it, where something was held back or a loop stores more, and nothing else is new."""
    assert [text for text in roots(now, before, ("temp_bytes",)) if "remat" in text] == said


def test_a_product_that_is_made_in_another_way_is_no_remat():
    """It is gone altogether; what was recomputed is still computed once."""
    before = {DOT: 3, "float32[8,8] x float32[8,8]": 1}
    assert roots({ADD: 1}, {ADD: 1}, products=before, facts={"matmul_flops": 600_000}) == []


TILED = {"stablehlo.broadcast_in_dim 4x8x64xf32": 1, "stablehlo.reshape 32x64xf32": 1}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, True),  # tiled
        ({"stablehlo.add 32x64xf32": 1}, True),  # and used
        ({"stablehlo.add 64x64xf32": 1}, False),  # beside something larger
        ({"stablehlo.reshape 32x64xf32": 0}, False),  # broadcast alone
    ],
)
def test_an_array_that_is_repeated(more, found):
    """A broadcast that stays one is free; one that is given another shape is written out."""
    operations = {label: count for label, count in ({ADD: 1} | TILED | more).items() if count}
    said = "an array is repeated: stablehlo.broadcast_in_dim 4x8x64xf32 0 → 1"
    assert roots(operations, {ADD: 1}, ("temp_bytes",)) == ([said] if found else [])


SMALL, LARGE = "float32[60,64] x float32[64,16]", "float32[64,64] x float32[64,16]"
PAD = "stablehlo.pad 64x64xf32"


@pytest.mark.parametrize(
    ("now", "operations", "said"),
    [
        ({LARGE: 2}, {}, [f"the same products of larger arrays: {SMALL} → {LARGE} at model.py:9"]),
        ({LARGE: 2}, {PAD: 1}, [f"arrays are padded: {PAD} 0 → 1 at model.py:8; the same products of larger arrays: {SMALL} → {LARGE} at model.py:9"]),
        ({LARGE: 1, SMALL: 1}, {}, [f"the same products of larger arrays: {SMALL} → {LARGE} at model.py:9"]),
        ({LARGE: 3}, {}, []),
        ({SMALL: 3}, {}, []),
        ({"float32[64,48] x float32[48,16]": 2}, {}, []),
        ({"bfloat16[64,64] x bfloat16[64,16]": 2}, {}, []),
    ],
    ids=["larger", "padded", "one of two", "and one more", "one more", "not all larger", "another type"],
)  # fmt: skip
def test_products_of_larger_arrays(now, operations, said):
    """As many as before, of types that differ by extents alone, none of which shrank."""
    lines = {LARGE: "model.py:9", PAD: "model.py:8"}
    found = roots(
        {ADD: 1, **operations}, {ADD: 1}, ("matmul_flops",), matmuls=now, products={SMALL: 2},
        facts={"matmul_flops": 9_000_000}, culprits=Culprits(lines=lines),
    )  # fmt: skip
    assert found == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("float32[8,128]", "float32[4]"), "step is given larger arrays: float32[8,64] → float32[8,128] at model.py:5"),
        (("float32[8,128]", "float32[8]"), "step is given larger arrays: float32[8,64] → float32[8,128] at model.py:5; and 1 more"),
        (("float32[8,32]", "float32[8]"), None),
        (("bfloat16[8,64]", "float32[4]"), None),
        (("float32[8,64]",), None),
    ],
    ids=["one", "two", "another smaller", "another type", "fewer"],
)  # fmt: skip
def test_programs_that_are_given_more(arguments, said):
    """A cache that is longer, a batch that is padded by plain Python: the program is named, with its line."""
    before = launched_program(name="step", fingerprint="1" * 32, arguments=("float32[8,64]", "float32[4]"))
    after = launched_program(name="step", fingerprint="2" * 32, arguments=arguments)
    now = measurement(launched_programs=(after,), culprits=Culprits(lines={"step": "model.py:5"}), eager=True)
    found = rank_causes(now, baseline(launched_programs=(before,), eager=True), {"temp_bytes"})
    assert [str(cause) for cause in found if cause.root] == ([said] if said else [])
