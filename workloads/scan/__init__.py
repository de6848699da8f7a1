"""scan against loop: the same turn taken many times, with a body that is compiled once."""

from jaxgate.model import Case
from workloads.scan import decode, loops, lstm, recurrence, rnn, sampling

CASES: tuple[Case, ...] = (*rnn.CASES, *lstm.CASES, *decode.CASES, *sampling.CASES, *loops.CASES, *recurrence.CASES)
