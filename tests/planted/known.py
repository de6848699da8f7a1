"""What today's engine misses or blames wrongly, and why: each is expected to fail until it is mended, then to be struck out."""

from __future__ import annotations

_COLLECTIVE = "collectives are no fact yet"
_LAYOUT = "the signature keeps no sharding, so that no argument can be blamed"
_RESULT = "the results are not described leaf by leaf, so that none can be blamed"
_RANK = "operations are ranked by how many came, so that one telling operation hides behind broadcasts"

MISSED: dict[str, str] = {
    "velocity starts as the parameters themselves: one buffer donated twice": "arguments are copied apart before a call",
    "activations are cast up for the layers after": "widening is no fact yet",
    "the gradients are summed in every micro-batch": _COLLECTIVE,
    "the gradients are summed a second time": _COLLECTIVE,
    "the gradients of all devices are gathered and averaged": _COLLECTIVE,
    "the parameters are averaged in every step as well": _COLLECTIVE,
    "the hidden units change their layout between two layers": _COLLECTIVE,
    "the hidden units are replicated between two layers": _COLLECTIVE,
}
"""Not red, or red for another reason than the mistake."""

MISBLAMED: dict[str, str] = {
    "a list of layers comes back as a tuple": "retraces are explained by paths, and a list has those of a tuple",
    "a static argument takes another value each step": "static arguments are not among the leaves that are compared",
    "a donated batch comes back in another dtype": "the lost argument is named, why it is lost is not",
    "a donated batch comes back cropped": "the lost argument is named, why it is lost is not",
    "the donated velocity is not read any more": "all donated arguments are named, not those that are lost",
    "remat saves everything": _RANK,
    "the matrix of attention is returned": _RESULT,
    "all logits are returned beside the classes": _RESULT,
    "the gradients are returned beside the new state": _RESULT,
    "the target is compared by a one-hot matrix": _RANK,
    "a layer is applied twice": "a product is placed at the first line with its shapes, which the baseline had too",
    "classes are found by sorting": _RANK,
    "the result is left in the type of the accumulator": _RESULT,
    "the batch is no longer spread over the devices": "a custom call that is gone is not blamed",
    "the parameters are stored on every device": _LAYOUT,
    "the optimiser's state is stored on every device": _LAYOUT,
    "the batch is given to every device whole": _LAYOUT,
}
"""Red for the right reason, with a first culprit line that names something else, or nothing."""
