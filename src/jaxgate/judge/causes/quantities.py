"""Quantities that move together: what a cause explains of a program, in sets that causes share."""

from __future__ import annotations

BUFFERS = frozenset({"temp_bytes", "peak_bytes", "xla_bytes"})
"""What a program keeps while it runs, and what it writes and reads."""
ARITHMETIC = frozenset({"xla_flops", "transcendentals"})
RUN = BUFFERS | ARITHMETIC | {"run_ns"}
"""What one run of a program takes."""
WORK = RUN | {"stablehlo_ops"}
"""The same of a program that is also longer or shorter as a text."""
MEMORY = frozenset({"peak_bytes", "state_bytes"})
"""Sums over arguments, results and temporaries."""
COMPILED = BUFFERS | ARITHMETIC | MEMORY | {"aliased_bytes", "argument_bytes", "output_bytes"}
"""What the compiler says of its executable."""
PHASES = frozenset({"trace_ns", "lower_ns", "compile_ns", "first_call_ns"})
