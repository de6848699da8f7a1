"""Two programs timed in turn in one process."""

from jaxgate.observe.duel.call_side import Prepared, prepare_side, side_of
from jaxgate.observe.duel.compiled_baseline import Opponents
from jaxgate.observe.duel.duel import Contender, Side, agree, prepare, run_duel
from jaxgate.observe.duel.saved_arguments import restore, to_files
from jaxgate.observe.duel.subject_and_reference import export_opponents, opponents_fingerprint
