"""The protocol of the ranks of a ``jax.distributed`` job: one case at a time, in lock-step."""

from jaxgate.distributed.barrier import BrokenRanksError, LeftError, Station
from jaxgate.distributed.follower import Follow
from jaxgate.distributed.leader import Lead
from jaxgate.distributed.transport import Door, Message, WireError, enter, own_name
