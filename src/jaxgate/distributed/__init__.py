"""The protocol of the ranks of a ``jax.distributed`` job: one case at a time, in lock-step."""

from jaxgate.distributed.barrier import BrokenRanksError, LeftError, RankBarrier
from jaxgate.distributed.follower import Follower
from jaxgate.distributed.leader import Leader
from jaxgate.distributed.transport import Listener, Message, WireError, enter, own_name
