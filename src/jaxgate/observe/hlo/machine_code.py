"""The machine code of an executable: what the compiler made, whatever it was told, by flags or by anything unlisted.

The optimised program does not tell: seen on CPU, without optimisation of the code its text is the same.
"""

from __future__ import annotations

import hashlib

import jax

from jaxgate.observe.hlo.protobuf import contents, messages, read_delimited, read_message

_EXECUTABLE, _OBJECT_FILES, _CODE = 1, 8, 1
"""Fields of the serialised executable, of the compiler's result in it, and of an object file."""


def machine_code_fingerprint(executable: jax.stages.Compiled) -> str | None:
    """Hash the object files of an executable for the CPU, in an order of their own: threads compile them side by side.

    Symbols have the names that the compiler gave to instructions; source lines and folders are not in it. Seen to be
    equal on both JAX lines: of 13 programs in other processes, folders and orders, and from moved source lines.

    Returns:
        The hash; ``None`` where there is no such code: it came out of the persistent cache, or this release keeps it
        elsewhere.
    """
    try:
        _, content = read_delimited(executable.runtime_executable().serialize())
        result = messages(read_message(content), _EXECUTABLE)[0]
        codes = [code for file in messages(result, _OBJECT_FILES) for code in contents(file, _CODE)]
    except (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None
    return hash_code(codes)


def hash_code(codes: list[bytes]) -> str | None:
    """Hash the code of some files, in any order; ``None`` where there is none."""
    state = hashlib.blake2b(digest_size=16)
    for code in sorted(codes):
        state.update(len(code).to_bytes(8, "little") + code)
    return state.hexdigest() if any(codes) else None
