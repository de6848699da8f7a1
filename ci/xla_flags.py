"""Set every flag of XLA, one at a time, and see whether the environment of a baseline would name it.

Usage: python ci/xla_flags.py   (about 2 minutes on a 2-core CPU)

The names come from jaxlib's own libraries. Each is tried with several values in a process that starts XLA, where the hash of
the compiler's options (``compile_options`` of an environment) has to move: it does not matter then whether the flag came
from a variable, a file, or a variable that is gone since. For a flag that XLA takes without moving it the programs of
``ci/settings.py`` are looked at, with the variable itself left out. Prints a Markdown table of these.

Exit status 1 if one of them changed anything.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import jax
import jaxlib
from settings import changed_by, usual_look

from jaxgate.observe.machine.jax_settings import read_defaults

VALUES = ("true", "false", "1", "3", "x", "none", "default", "disabled", "warning")
"""One of these is another value for nearly every flag; XLA refuses those of another type."""
_NAME = re.compile(rb"(?<![\w.])xla_[a-z0-9_]{4,70}(?![\w./])")


def names() -> list[str]:
    """What may be the name of a flag, in the libraries of jaxlib."""
    found: set[str] = set()
    for path in Path(jaxlib.__file__).parent.glob("*.so"):
        found |= {match.decode() for match in _NAME.findall(path.read_bytes())}
    return sorted(found)


def options_under(flags: str) -> str:
    """Hash of the compiler's options in a process with these flags; empty where XLA refuses them."""
    reader, writer = os.pipe()
    process = os.fork()  # before XLA starts: a child has all imports, and reads the flags itself
    if process == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.environ["XLA_FLAGS"] = flags
        os.write(writer, read_defaults().compile_options.encode())
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 100).decode()
    os.close(reader)
    os.waitpid(process, 0)
    return said


def main() -> int:
    """Try them, and print what is left."""
    usual, moved, refused, quiet = options_under(""), 0, 0, []
    for name in names():
        hashes = {value: options_under(f"--{name}={value}") for value in VALUES}
        if not any(hashes.values()):
            refused += 1
        elif any(said and said != usual for said in hashes.values()):
            moved += 1
        else:
            quiet.append((name, [value for value in VALUES if hashes[value]]))
    print(
        f"jax {jax.__version__}: {moved} flags move the hash, {refused} names are no flags or take none of the values\n"
    )
    print("| flag that does not move it | tried | changed |\n|---|---|---|")
    before, unnamed = usual_look(), []
    for name, values in quiet:
        changed: list[str] = []
        for value in values:
            found = changed_by(before, "", None, XLA_FLAGS=f"--{name}={value}")
            changed += [f"not run: {found}"] if isinstance(found, str) else found[1]
        unnamed += [name] if changed else []
        print(f"| {name} | {', '.join(values)} | {', '.join(changed) or 'nothing'} |", flush=True)
    print(f"\nchanged something and not named: {', '.join(unnamed) or 'none'}")
    return bool(unnamed)


if __name__ == "__main__":
    sys.exit(main())
