"""Pallas kernels of a TPU, as they stand in a program: without where their lines come from."""

from __future__ import annotations

import base64
import json

from jaxgate.observe.compat import register_tpu_dialect

TARGET = "tpu_custom_call"


def without_locations(config: str) -> str:
    """What a kernel does, as text that stays the same where its file is moved or a line is put above it.

    Args:
        config: ``backend_config`` of the call: JSON, with the kernel as MLIR bytecode.

    Returns:
        The same with the kernel as text; as it is where this release writes it otherwise.
    """
    try:
        from jax.extend.mlir import ir  # noqa: PLC0415 - imports Pallas, which makes jax 0.12 trace everything anew

        found = json.loads(config)
        call = found["custom_call_config"]
        call.pop("debug_locations", None)  # 0.12
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            register_tpu_dialect(context)
            call["body"] = ir.Module.parse(base64.b64decode(call["body"])).operation.get_asm(enable_debug_info=False)
        return json.dumps(found, sort_keys=True)
    except Exception:  # noqa: BLE001 - the bindings raise their own
        return config
