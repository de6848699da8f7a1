"""A second opinion on what a compiled program computes, and what float error explains of a difference."""

from jaxgate.observe.opinion.agreement import Agreement, Distance, Run, allowed_error, compare, distance, perturbed
from jaxgate.observe.opinion.program_traits import ProgramTraits, read_traits
from jaxgate.observe.opinion.second_compile import WITHOUT_LIBRARIES, NotRecompiledError, compile_again
from jaxgate.observe.opinion.second_opinion import Interpreter, Question, second_opinion
