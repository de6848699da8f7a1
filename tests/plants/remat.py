"""remat that is not there, keeps everything, or stands in the wrong place."""

from __future__ import annotations

from tests.plants.model import Plant

POLICIES = "workloads/remat/policies.py"
NOTHING = "mlp-stacked-remat-that-saves-nothing-vs-plain"

PLANTS = (
    Plant(
        name="the block is passed on without its checkpoint",
        file=POLICIES,
        case=NOTHING,
        edits=(("return stack(form, again)", "return stack(form, layer)"),),
        moves=frozenset({"temp_bytes"}),
        culprit="x",
    ),
    Plant(
        name="the checkpoint saves everything",
        file=POLICIES,
        case=NOTHING,
        edits=(("saves=None,", "saves=policies.everything_saveable,"),),
        moves=frozenset({"temp_bytes"}),
        culprit="x",
    ),
    Plant(
        name="the checkpoint stands around the whole stack",
        file=POLICIES,
        case=NOTHING,
        edits=(
            ("jax.checkpoint(layer,", "jax.checkpoint(stack(form, layer),"),
            ("return stack(form, again)", "return again"),
        ),
        moves=frozenset({"temp_bytes"}),
        culprit="x",
    ),
    Plant(
        name="a name in the policy is mistyped, and nothing has it",
        file=POLICIES,
        case="mlp-stacked-remat-that-saves-names-vs-plain",
        edits=(('"attended", "hidden"', '"attended", "hiden"'),),
        moves=frozenset({"matmul_flops"}),
        culprit="x",
    ),
    Plant(
        name="prevent_cse is off outside a loop",
        file=POLICIES,
        case="mlp-unrolled-remat-that-saves-nothing-vs-plain",
        edits=(('prevent_cse=form == "unrolled"', "prevent_cse=False"),),
        moves=frozenset({"temp_bytes"}),
        culprit="x",
    ),
    Plant(
        name="half of the batch is dropped",
        file=POLICIES,
        case=NOTHING,
        edits=(("squared_error(network(p, x), y)", "squared_error(network(p, x[::2]), y[::2])"),),
        status="INVALID",
        culprit="does not influence the result",
    ),
    Plant(
        name="what each block returns is returned as well",
        file=POLICIES,
        case=NOTHING,
        edits=(
            (
                "jax.value_and_grad(lambda p: squared_error(network(p, x), y))(params)",
                "jax.value_and_grad(lambda p: (squared_error(network(p, x), y), network(p, x)), has_aux=True)(params)",
            ),
        ),
        moves=frozenset({"output_bytes", "temp_bytes"}),
        culprit="x",
    ),
)
