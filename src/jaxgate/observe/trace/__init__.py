"""Tracing, lowering and compiling once, with what it cost, why it happened again, and what the program says."""

from jaxgate.observe.trace.captured_constants import describe_constants
from jaxgate.observe.trace.clocks import CLOCKS, Clock, Clocks, OwnTime, WallTime, uncollected
from jaxgate.observe.trace.compile_events import Events, record
from jaxgate.observe.trace.device_assignment import device_assignment, devices_of
from jaxgate.observe.trace.fingerprint import is_splat, program_fingerprint
from jaxgate.observe.trace.jaxpr_cost import Work, count_work
from jaxgate.observe.trace.jit_wrapping import as_jitted
from jaxgate.observe.trace.jitted_functions import find_jitted_functions
from jaxgate.observe.trace.lowering import Lowered, lower
from jaxgate.observe.trace.retraces import PMAP, Blame, Culprit, retrace_lines
from jaxgate.observe.trace.source_hash import source_fingerprint
from jaxgate.observe.trace.stablehlo import Constant, walk
from jaxgate.observe.trace.stages import Program, compile_program, compiled_facts, refuse_idle
from jaxgate.observe.trace.target_compiler import TargetCompiler
from jaxgate.observe.trace.value_dependence import value_dependent
