"""Calls of a case: how a subject is called, its steps, samples and launches, and the reference's result."""

from jaxgate.observe.execute.correctness import check_agreement, check_batch, refuse_nan
from jaxgate.observe.execute.dispatch_time import dispatch_time
from jaxgate.observe.execute.dispatches import Launched, count_launches
from jaxgate.observe.execute.energy import Metered, measure_energy
from jaxgate.observe.execute.first_steps import STEPS, Stepped, take_steps
from jaxgate.observe.execute.further_steps import MAX_STEPS, MORE_NS, take_further_steps
from jaxgate.observe.execute.python_calls import Called, count_python
from jaxgate.observe.execute.recorded_calls import Forced, RecordedCalls, RecordedProgram, recorded_calls
from jaxgate.observe.execute.references import Reference, compile_alternative, observe_alternatives, observe_reference
from jaxgate.observe.execute.samples import Sampled, call_time, describe_retraces, launch_time, sample, take_samples
from jaxgate.observe.execute.subjects import VALUES, WHY_NOT, EagerSubject, JittedSubject
