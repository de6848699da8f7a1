"""Profiles of a case in TensorBoard's layout, and what they say of its operations."""

from jaxgate.observe.profile.capture import Limits, Taken, session_name, side_folder, take_profile
from jaxgate.observe.profile.op_names import lines_of, operations
from jaxgate.observe.profile.profiled_programs import Profiled, reference, stored, today
from jaxgate.observe.profile.program_texts import demands_of, texts_of
from jaxgate.observe.profile.xplane import read_steps
