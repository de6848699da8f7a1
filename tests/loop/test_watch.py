"""Training loops with one planted mistake each: what is counted, and how the first clause names it."""

from __future__ import annotations

import ctypes
import io
import pickle
import re
import threading
import time
import tracemalloc
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.ext.loop.gate import judge_loop, watch_both
from jaxgate.ext.loop.model import FEWEST, Loop
from jaxgate.ext.loop.resume import _compiled, resume
from jaxgate.ext.loop.watch import compiled_later
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError

WIDTH = 256
LIBC, NATIVE = ctypes.CDLL(None), 24_000_000
LIBC.malloc.restype, LIBC.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
LIBC.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)


def update(state, batch):
    """A step of momentum; its state is as large as its two arrays."""
    grads = jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(state["w"])
    momentum = 0.9 * state["m"] + grads
    return {"w": state["w"] - momentum, "m": momentum, "step": state["step"] + 1}, jnp.sum(momentum)


jitted = jax.jit(update, donate_argnums=0)


def make_state():
    return {"w": jnp.eye(WIDTH), "m": jnp.zeros((WIDTH, WIDTH)), "step": jnp.int32(0)}


def batches():
    rng = np.random.default_rng(0)
    while True:
        yield rng.normal(size=(8, WIDTH)).astype(np.float32)


def save(folder, state):
    with (folder / "state").open("wb") as file:
        pickle.dump(jax.device_get(state), file)


def restore(folder, like):
    del like
    with (folder / "state").open("rb") as file:
        return jax.device_put(pickle.load(file))


def log(number, loss):
    if number % 10 == 0:
        float(loss)


def verdict_of(tmp_path, **parts):
    """Of a loop whose other process is this one, without what it has compiled."""

    def again(folder, *_, **__):
        jax.clear_caches()
        return resume(loop, folder / "saved" / "1", lambda _: None)

    loop = Loop(**{"make_state": make_state, "batches": batches, "step": jitted, "steps": FEWEST, **parts})
    seen = watch_both(loop, tmp_path, again, lambda _: None)
    return judge_loop("train/step", loop, seen)


SAVED = {"save": save, "restore": restore, "log": log}


def test_a_sound_loop_is_green(tmp_path):
    """Nothing is left behind, and it ends where it would have without a stop, to the bit."""
    verdict = verdict_of(tmp_path, **SAVED)
    assert (verdict.status, verdict.fails) == (Status.SAME, False), verdict.findings[0]
    assert len(verdict.findings) == 21


def test_a_loop_without_a_log_and_a_save_is_green(tmp_path):
    verdict = verdict_of(tmp_path)
    assert (verdict.status, len(verdict.findings)) == (Status.SAME, 13)


LOG = SimpleNamespace()
THREADS: list[threading.Event] = []
FILES: list[object] = []
BLOCKS: list[int] = []
CACHE: dict[float, object] = {}


def cyclic(state, batch):
    def again(depth):
        return again(depth - 1) if depth else jitted(state, batch)

    return again(1)


def compiled_by_value(state, batch):
    scale = float(batch[0, 0])
    if scale not in CACHE:
        CACHE[scale] = jax.jit(lambda batch: batch * scale)
    return jitted(state, CACHE[scale](batch))


def table_by_value(state, batch):
    CACHE[float(batch[0, 0])] = [float(batch[0, 0]) * number for number in range(200)]
    return jitted(state, batch)


def copying():
    data = np.zeros((4096, WIDTH), np.float32)
    while True:
        yield data.copy()[:8]


def starving():
    for batch in batches():
        time.sleep(0.02)
        yield batch


def waiting(number, loss):
    del number, loss
    event = threading.Event()
    THREADS.append(event)
    threading.Thread(target=event.wait, name="metrics", daemon=True).start()


def opening(number, loss):
    del number, loss
    FILES.append(open("/dev/null", "rb"))  # noqa: PTH123, SIM115 - what is planted


def reading(number, loss):
    return f"{number}: {loss:.3f}"


def reading_by_numpy(number, loss):
    return number, np.asarray(loss)


def reading_what_it_makes(number, loss):
    return number, float(jnp.mean(loss))


def reading_in_the_step(state, batch):
    state, loss = jitted(state, batch)
    return state, float(loss)


TABLE = np.ones((1024, WIDTH), np.float32)


def sending(state, batch):
    return jitted(state, batch + jnp.asarray(TABLE)[0])


def staying_on_the_host():
    return {**make_state(), "table": TABLE}


def with_a_table(state, batch):
    new, loss = jitted({name: state[name] for name in ("w", "m", "step")}, batch + state["table"][0])
    return {**new, "table": state["table"]}, loss


def native(state, batch):
    BLOCKS.append(LIBC.malloc(NATIVE))
    LIBC.memset(BLOCKS[-1], 1, NATIVE)
    return jitted(state, batch)


def gathering(folder, state):
    everything = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(state)])
    (folder / "flat").write_bytes(everything.tobytes())
    save(folder, state)


def remembering(folder, state):
    FILES.append(io.BytesIO(np.concatenate([np.array(leaf).ravel() for leaf in jax.tree.leaves(state)] * 2)))
    save(folder, state)


def leaving_open(folder, state):
    save(folder, state)
    FILES.append((folder / "state").open("rb"))


def committed():
    return jax.device_put(make_state(), jax.devices()[0])


def restoring(change):
    def restored(folder, like):
        return change(restore(folder, like), like)

    return restored


PLANTS = {
    "losses are kept": ({"log": lambda _, loss: LOG.losses.append(loss)}, "kept_arrays", "a list"),
    "a closure that calls itself": ({"step": cyclic}, "cyclic_objects", r"function again at .*test_watch.py:\d+"),
    "a program for each value": (
        {"step": compiled_by_value},
        "repeated_compiles",
        r"new function object.*test_watch.py",
    ),
    "a table for each value": ({"step": table_by_value}, "kept_bytes", r"made at .*test_watch.py:\d+"),
    "a loader that copies": ({"batches": copying}, "batch_ratio", r"copying at .*test_watch.py:\d+"),
    "a loader that starves": ({"batches": starving}, "waiting", r"starving at .*test_watch.py:\d+"),
    "a thread a step": ({"log": waiting}, "threads", "metrics"),
    "a file a step": ({"log": opening}, "open_files", "null"),
    "a log that reads": ({"log": reading}, "log_reads", r"float32\[\] is read at .*test_watch.py:\d+"),
    "a log that reads by NumPy": (
        {"log": reading_by_numpy},
        "log_reads",
        r"float32\[\] is read at .*test_watch.py:\d+",
    ),
    "a log that reads what it makes of a result": (
        {"log": reading_what_it_makes},
        "log_reads",
        r"float32\[\] is read at .*test_watch.py:\d+",
    ),
    "a step that reads": ({"step": reading_in_the_step}, "step_reads", r"float32\[\] is read at .*test_watch.py:\d+"),
    "a step that sends a table": ({"step": sending}, "sent_ratio", r"float32\[1024,256\] at .*test_watch.py:\d+"),
    "a state that stays on the host": (
        {"make_state": staying_on_the_host, "step": with_a_table},
        "sent_ratio",
        r"float32\[1024,256\]",
    ),
    "memory of no Python": ({"step": native}, "resident_bytes", ""),
    "a save that gathers": ({**SAVED, "save": gathering}, "save_ratio", r"gathering at .*test_watch.py:\d+"),
    "a save that keeps what it wrote": (
        {**SAVED, "save": remembering, "allow": {"save_ratio": 9}},
        "saved_bytes",
        r"remembering at .*test_watch.py:\d+",
    ),
    "a file a save": ({**SAVED, "save": leaving_open}, "saved_files", "state"),
    "NumPy is restored": (
        {**SAVED, "restore": restoring(lambda state, _: jax.tree.map(np.asarray, state))},
        "restored_leaves",
        r"state\['m'\]: uncommitted device array float32\[256,256\] → NumPy float32\[256,256\]",
    ),
    "uncommitted is restored": (
        {**SAVED, "make_state": committed},
        "restored_leaves",
        r"state\['m'\]: device array float32\[256,256\] → uncommitted device array float32\[256,256\]",
    ),
    "half of it is restored": (
        {**SAVED, "restore": restoring(lambda state, like: {**state, "m": like["m"]})},
        "other_ends",
        r"state\['m'\]\[\d+, \d+\]: the restored loop gives [\d.-]+, the other [\d.-]+",
    ),
    "a number is restored among committed arrays": (
        {
            **SAVED,
            "restore": restoring(
                lambda state, _: {**jax.device_put(state, jax.devices()[0]), "step": int(state["step"])}
            ),
        },
        "resumed_compiles",
        r"state\['step'\]: Python int",
    ),
    "another type is restored": (
        {**SAVED, "restore": restoring(lambda state, _: {**state, "step": np.float32(state["step"])})},
        "restored_leaves",
        r"state\['step'\]",
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_mistake_is_red_by_its_own_count(tmp_path, plant):
    """The first clause has its name, the culprit where it is."""
    parts, name, culprit = PLANTS[plant]
    LOG.losses = []  # of this test: the collector no longer knows those of the import, which are frozen
    try:
        verdict = verdict_of(tmp_path, **parts)
    finally:
        for event in THREADS:
            event.set()
        for file in FILES:
            file.close()
        for block in BLOCKS:
            LIBC.free(block)
        for kept in (THREADS, FILES, CACHE, BLOCKS):
            kept.clear()
    assert verdict.fails
    assert verdict.findings[0].name == name, verdict.findings[0]
    assert re.search(culprit, verdict.causes[0].text if verdict.causes else ""), verdict.causes


def test_what_is_allowed_is_green(tmp_path):
    assert verdict_of(tmp_path, log=reading, allow={"log_reads": 1}).status is Status.SAME


def test_a_batch_may_be_made_wider_before_it_is_sent(tmp_path):
    """Four bytes for one are not beyond what is allowed: many loaders give bytes."""

    def bytes_of_pixels():
        while True:
            yield np.ones((4096, WIDTH), np.uint8)

    def step(state, batch):
        return jitted(state, jnp.asarray(batch.astype(np.float32)))

    assert verdict_of(tmp_path, batches=bytes_of_pixels, step=step).status is Status.SAME


def test_a_log_may_read_what_the_step_before_gave(tmp_path):
    last = []

    def late(number, loss):
        if last:
            float(last.pop())
        last.append(loss)

    assert verdict_of(tmp_path, log=late).status is Status.SAME


def test_a_loader_that_is_ahead_is_green(tmp_path):
    """Two batches wait on the device; there are no more of them after any step."""

    def ahead():
        queue = []
        for batch in batches():
            queue.append(jax.device_put(batch))
            if len(queue) > 2:
                yield queue.pop(0)

    assert verdict_of(tmp_path, batches=ahead).status is Status.SAME


def test_a_loader_that_fills_its_queue_in_bursts_is_green(tmp_path):
    """It holds more after most of the steps that are looked at, but not after each."""

    def in_bursts():
        waiting = []
        for number, batch in enumerate(batches(), 1):
            ahead = {11: 1, 12: 2, 13: 2, 14: 4}.get(number, 0)
            waiting.extend(np.ones((8, WIDTH)) for _ in range(ahead - len(waiting)))
            yield batch

    assert verdict_of(tmp_path, batches=in_bursts).status is Status.SAME


def importing(part):
    """A part that fills a table when it is called first, as an import does."""
    table = []

    def called(*args):
        if not table:
            table.append(np.ones(1_000_000))
        return part(*args)

    return called


def test_what_the_first_save_and_restore_import_is_not_theirs(tmp_path):
    parts = {"save": importing(save), "restore": importing(restore)}
    assert verdict_of(tmp_path, **parts).status is Status.SAME


def test_a_function_that_is_compiled_more_often_after_the_restore_is_told():
    """Though it is compiled in the second step of either: a first step may have Python's numbers."""
    before = compiled_later([{"step": "first"}, {"step": "a number"}, {}])
    assert _compiled(before, [{"step": ""}, {"step": "a number"}, {}]).value == 0
    again = _compiled(before, [{"step": ""}, {"step": "a number"}, {"step": "another type"}])
    assert (again.value, again.where) == (1, "a number")


def test_each_function_has_its_own_cause(tmp_path):
    """Of two that are compiled in each step, the one that is named is not the other's."""

    def two(state, batch):
        jax.jit(lambda x: x + 1)(batch)
        return compiled_by_value(state, batch)

    try:
        verdict = verdict_of(tmp_path, step=two)
    finally:
        CACHE.clear()
    assert verdict.findings[0].name == "repeated_compiles"
    assert re.search(r"new function object per call at .*test_watch.py", verdict.causes[0].text)


def test_a_leaf_that_only_one_of_both_ends_with_is_told(tmp_path):
    extra = restoring(lambda state, _: {**state, "extra": jnp.ones(3)})

    def keeping(state, batch):
        new, loss = jitted({name: state[name] for name in ("w", "m", "step")}, batch)
        return {**new, **({"extra": state["extra"]} if "extra" in state else {})}, loss

    verdict = verdict_of(tmp_path, **{**SAVED, "restore": extra, "step": keeping})
    assert (verdict.findings[0].name, verdict.causes[0].text) == ("other_ends", "state['extra'] is in one of both")


def test_a_projects_own_tracemalloc_stays_on(tmp_path):
    tracemalloc.start()
    try:
        verdict_of(tmp_path, **SAVED)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("parts", "error", "text"),
    [
        ({"step": None}, TypeError, "expected a function as step="),
        ({"save": save}, TypeError, "expected save= and restore= together"),
        ({"steps": 3}, ValueError, "expected steps=14 or more, found 3"),
        ({"allow": {"losses": 1}}, ValueError, "in allow=, found losses"),
    ],
)
def test_what_cannot_run_is_refused(parts, error, text):
    with pytest.raises(error, match=text):
        Loop(**{"make_state": make_state, "batches": batches, "step": jitted, **parts})


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"batches": lambda: iter([np.zeros((8, WIDTH), np.float32)] * 5)}, "expected 14 batches, found 5"),
        ({"step": lambda state, batch: jitted(state, batch)[0]}, r"expected step= to give \(state, what is logged\)"),
        ({**SAVED, "restore": lambda folder, like: (folder / "other").read_bytes()}, "No such file"),
        ({"step": lambda state, batch: jitted({**state, "m": state["m"] / 0}, batch)}, "expected numbers, found"),
    ],
)
def test_what_fails_on_the_way_is_invalid(tmp_path, parts, text):
    with pytest.raises(InvalidCaseError, match=text):
        verdict_of(tmp_path, **parts)
