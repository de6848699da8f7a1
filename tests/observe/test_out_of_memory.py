"""Out of memory: the numbers and the list of every backend's text, in one form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.observe.errors import MAX_LARGEST, guarded, read_exhausted, size_text

GIB = 2**30

TPU_COMPILER = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.53G of 15.48G hbm. Exceeded hbm capacity by 5.05G.

Total hbm usage >= 21.05G:
    reserved        530.00M
    program          20.53G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 20.53G:
    global            1.14M
    HLO temp         20.52G (100.0% utilization: Unpadded (18.11G) Padded (18.11G), 0.3% fragmentation (60.89M))

  Largest program allocations in hbm:

  1. Size: 2.00G
     Operator: op_name="jit(step)/jit(main)/jvp(Model)/layer_0/attention/...qhd,...khd->...hqk/dot_general[dimension_numbers=(((3,), (3,)), ((0, 2), (0, 2))) preferred_element_type=bfloat16]" source_file="/home/user/model.py" source_line=1059
     Shape: f32[32,4096,4096]{1,2,0:T(8,128)}
     Unpadded size: 2.00G
     XLA label: fusion.1265 = fusion(custom-call.224, custom-call.22), kind=kOutput, calls=fused_computation.957
     Allocation type: HLO temp
     ==========================

  2. Size: 512.00M
     Shape: bf16[2048,1,131072]{2,0,1:T(4,128)(2,1)}
     Unpadded size: 128.00M
     Extra memory due to padding: 384.00M (4.0x expansion)
     XLA label: copy.3 = copy(param.7)
     Allocation type: HLO temp
     ==========================
"""
TPU_E1000 = """RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO temporaries (93.22G) exceeds available HBM (15.75G). HLO module: jit_step.
See https://openxla.org/xla/errors/error_1000 for more details."""
GPU_PEAK = """RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00MiB
              constant allocation:         0B
        maybe_live_out allocation:    6.00MiB
                 total allocation:   12.00MiB
              total fragmentation:         0B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 6.00MiB
\t\tOperator: op_name="jit(concatenate)/jit(main)/concatenate[dimension=0]" source_file="/home/user/model.py" source_line=689
\t\tXLA Label: concatenate
\t\tShape: f32[4096,128,3]
\t\t==========================

\tBuffer 2:
\t\tSize: 384.0KiB
\t\tEntry Parameter Subshape: f32[256,128,3]
\t\t==========================

\tBuffer 3:
\t\tSize: 1.5KiB
\t\tOperator: op_name="jit(f)/reduce_sum" source_file="{library}" source_line=97
\t\tXLA Label: fusion
\t\tShape: f32[384]
"""

FORMS = {
    "cpu": ("RESOURCE_EXHAUSTED: Out of memory allocating 4503599627370496 bytes.", 2**52, None, None, ""),
    "tpu compiler": (TPU_COMPILER, round(20.53 * GIB), round(15.48 * GIB), None, "hbm"),
    "tpu compiler, today": (TPU_E1000, round(93.22 * GIB), round(15.75 * GIB), None, "hbm"),
    "tpu vmem": (
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. "
        "Used 32.42M of 16.00M vmem. Exceeded vmem capacity by 16.42M",
        round(32.42 * 2**20), 16 * 2**20, None, "vmem",
    ),
    "tpu program": (
        "RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not possible. "
        "There are 6.78G free, 0B reserved, and 3.33G reservable.",
        round(6.48 * GIB), None, round(6.78 * GIB), "",
    ),
    "tpu buffer": (
        "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 15.65G. That was not possible. "
        "There are 11.08G free.; (0x0x0_HBM0)",
        round(15.65 * GIB), None, round(11.08 * GIB), "",
    ),
    "gpu program": (GPU_PEAK, 6291456, None, None, ""),
    "gpu allocator": (
        "RESOURCE_EXHAUSTED: Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.21GiB (rounded to 2368997376)"
        "requested by op",
        2368997376, None, None, "",
    ),
    "gpu buffer": (
        "RESOURCE_EXHAUSTED: Failed to allocate request for 87.48GiB (93935126000B) on device ordinal 0", 93935126000,
        None, None, "",
    ),
    "gpu, round figure": (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16.00GiB.", 16 * GIB, None, None, "",
    ),
    "cuda": (
        "RESOURCE_EXHAUSTED: gpu_async_0 cuMemAllocAsync failed to allocate 1225195446464 bytes: CUDA_ERROR_OUT_OF_MEMORY: "
        "out of memory\n Reported by CUDA: Free memory/Total memory: 22635544576/85095874560",
        1225195446464, 85095874560, 22635544576, "",
    ),
    "gpu kernel": (
        "RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 245760, available: 232448", 245760, 232448,
        None, "shared memory",
    ),
    "says no more": ("RESOURCE_EXHAUSTED: out of memory", None, None, None, ""),
    "in old words": (
        "Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.", 5520758552, None, None, "",
    ),
}  # fmt: skip


REASONS = {
    "cpu": "asked for 4.5 PB",
    "tpu compiler": "asked for 22.0 GB, the device has 16.6 GB of hbm",
    "tpu buffer": "asked for 16.8 GB, 11.9 GB free",
    "cuda": "asked for 1.2 TB, the device has 85.1 GB, 22.6 GB free",
    "gpu kernel": "asked for 245.8 kB, the device has 232.4 kB of shared memory",
    "says no more": "out of memory",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_its_numbers(form):
    """Asked, limit, free and which memory; a letter of XLA's is a power of two."""
    text, *expected = FORMS[form]
    found = read_exhausted(text)
    assert [found.asked_bytes, found.limit_bytes, found.free_bytes, found.space] == expected
    if form in REASONS:
        assert found.reason == f"RESOURCE_EXHAUSTED: {REASONS[form]}"  # both numbers, or the error's own first line


def test_the_list_of_the_tpu_compiler():
    """Size, shape without its layout, operation without its parameters, place, kind; a label where no operation is."""
    assert read_exhausted(TPU_COMPILER).largest == (
        "2.1 GB f32[32,4096,4096] jit(step)/jit(main)/jvp(Model)/layer_0/attention/...qhd,...khd->...hqk/dot_general "
        "at /home/user/model.py:1059 (HLO temp)",
        "536.9 MB bf16[2048,1,131072] copy.3 (HLO temp)",
    )


def test_the_list_of_the_gpu_runtime():
    """Arguments are called so, and the line of an installed package is left out."""
    assert read_exhausted(GPU_PEAK.format(library=np.__file__)).largest == (
        "6.3 MB f32[4096,128,3] jit(concatenate)/jit(main)/concatenate at /home/user/model.py:689",
        "393.2 kB f32[256,128,3] argument",
        "1.5 kB f32[384] jit(f)/reduce_sum",
    )


def test_a_long_list_is_cut():
    entries = "\n".join(f"  {i}. Size: {99 - i}.00M\n     Shape: f32[{i}]{{0}}" for i in range(1, 21))
    largest = read_exhausted(f"RESOURCE_EXHAUSTED: Used 2.00G of 1.00G hbm.\n{entries}").largest
    assert (len(largest), largest[0], largest[-1]) == (MAX_LARGEST, "102.8 MB f32[1]", "93.3 MB f32[10]")


OTHERS = {
    "another status": "INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute()",
    "a size without a status": "failed to allocate 16 bytes",
    "a value error": ValueError("expected 3, found 4"),
    "a callback that read of it": "INTERNAL: Traceback (most recent call last):\n  RESOURCE_EXHAUSTED: x\nValueError: no",
}


@pytest.mark.parametrize("error", OTHERS.values(), ids=OTHERS)
def test_other_errors_are_not_taken_for_it(error):
    """Only the status itself, and Python's own ``MemoryError``, mean that memory ran out."""
    assert read_exhausted(error) is None


def test_the_host_can_run_out_too():
    """NumPy names its array; a bare ``MemoryError`` says nothing more."""
    with pytest.raises(MemoryError) as caught:
        np.empty((1 << 50,), np.float32)
    found = read_exhausted(caught.value)
    assert (found.asked_bytes, found.space) == (2**52, "host")
    assert found.reason == "out of memory on the host: asked for 4.5 PB"
    assert read_exhausted(MemoryError()).reason == "out of memory on the host"


HUGE = {
    "an array": lambda: jnp.zeros((1 << 50,), jnp.int8),
    "a result": lambda: jax.jit(lambda x: jnp.full((1 << 48,), x))(1.0),
    "a temporary": lambda: jax.jit(lambda x: jnp.sort(jnp.cos(jnp.arange(1 << 50, dtype=jnp.uint8) + x))[:3])(1.0),
}


@pytest.mark.jax_text
@pytest.mark.parametrize("what", HUGE)
def test_a_request_that_no_machine_can_meet(what):
    """The real error of this backend; a petabyte is refused before a byte of it is touched."""
    with pytest.raises(ExhaustedError) as caught, guarded("step 1 of the subject"):
        jax.block_until_ready(HUGE[what]())
    error = caught.value
    assert isinstance(error, InvalidCaseError)
    assert (error.stage, error.largest) == ("step 1 of the subject", ())
    assert error.reason.startswith("RESOURCE_EXHAUSTED: asked for ")
    assert " PB (at tests/observe/test_out_of_memory.py:" in error.reason


def test_a_verdict_of_its_own_is_handed_on():
    """A nested guard does not read an exhausted case again; the compiler's own list is carried. Other errors stay."""
    with pytest.raises(ExhaustedError) as caught, guarded("outside"), guarded("inside"):
        raise RuntimeError(TPU_COMPILER)
    assert len(caught.value.largest) == 2
    assert str(caught.value).startswith("inside: RESOURCE_EXHAUSTED: asked for 22.0 GB, the device has")
    with pytest.raises(InvalidCaseError) as caught, guarded("tracing the subject"):
        raise ValueError("no")
    assert not isinstance(caught.value, ExhaustedError)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2**52, "4.5 PB"),
        (1e19, "10000.0 PB"),
    ],
)
def test_sizes_are_in_powers_of_ten(nbytes, text):
    """As everywhere in a report; a number that rounds up takes the next unit."""
    assert size_text(nbytes) == text
