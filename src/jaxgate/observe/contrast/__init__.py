"""The sides of a contrast, run: whether they agree, what their frameworks say of them, how long a step takes."""

from jaxgate.observe.contrast.agreement import Seen, differences, look_at
from jaxgate.observe.contrast.launch import launch_side
from jaxgate.observe.contrast.loading import loading_of
from jaxgate.observe.contrast.runner import ContrastOpponent, Runner, runner_of
