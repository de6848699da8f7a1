"""Pure functions from measurements and baselines to verdicts. No JAX, no files, no clock."""

from jaxgate.judge.ageing import WARN_DAYS, WINDOW_DAYS, Ageing, age_days, find_ageing, last_day, window_note
from jaxgate.judge.causes.operation_times import compare, divide, typical
from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.judge.checkup import EXTRAS, NEEDED, TARGETS, remarks
from jaxgate.judge.claims import are_settled, breaks, decide_claim, hold
from jaxgate.judge.comparisons.bisection import BISECTED, is_same_program, moved_facts, quantity_of, remaining
from jaxgate.judge.comparisons.launches import judge_environment, may_be_faster, may_be_slower
from jaxgate.judge.comparisons.run_diff import diff_sides
from jaxgate.judge.comparisons.upgrade import Both, asks_for_launches, differs_in_calls, find_both, judge_upgrade
from jaxgate.judge.contrast import (
    decide_speed,
    disagreements,
    judge_contrast,
    needs_another,
    unlike,
)
from jaxgate.judge.difference import Difference, environment_differences
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.figures import figures_of, figures_of_baseline
from jaxgate.judge.history.drift_budget import NO_HISTORY, judge_drift, since_accepted, unreadable
from jaxgate.judge.history.fact_drift import comparable, fact_drift, fact_steps
from jaxgate.judge.history.level_shifts import Shifts, find_shifts
from jaxgate.judge.history.time_chain import Chain, ChainPoint, chain_times, drift_of
from jaxgate.judge.history.worst_accepted import worst_accepted
from jaxgate.judge.newer_jax import untested
from jaxgate.judge.opinion import is_compiled_anew
from jaxgate.judge.order import (
    ALWAYS_FAIL,
    conclude,
    has_red_phase,
    is_red,
    memory_decides,
    red_quantities,
    severest,
    waits_for_confirmation,
    worst_first,
)
from jaxgate.judge.policy import ARRIVAL_POLICIES, PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES
from jaxgate.judge.rank_merge import STAGE, merge, name_ranks
from jaxgate.judge.time import arrive_worse, hold_stored, judge_time
from jaxgate.judge.timing.calibration import name_margin, own_margin, why_not_applied
from jaxgate.judge.timing.confirmation import (
    PROBES,
    PROCESSES,
    accuses,
    blames_machine,
    comes_again,
    settle_time,
    too_many,
)
from jaxgate.judge.timing.duel import CONFIRM_COUNT, LOOKS, decide, decide_at_looks, is_settled, scaled
from jaxgate.judge.timing.energy import compare_energy, energy_of
from jaxgate.judge.timing.phases import settle_phases
from jaxgate.judge.timing.roofline import roofline
from jaxgate.judge.timing.scaling import scaling
from jaxgate.judge.timing.stored_times import (
    StoredLimit,
    decide_stored,
    may_answer,
    only_environment_changed,
    stored_limit,
    unlike_accepted,
)
from jaxgate.judge.verdict import judge, judge_invalid, why_untimed
from jaxgate.judge.waivers import apply_waivers, unneeded
