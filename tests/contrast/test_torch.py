"""The contrasts with PyTorch: the sides do the same, and each usual mistake of such comparisons is refused."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from workloads.contrast import CONTRASTS, models
from workloads.contrast.compare import compare
from workloads.contrast.contrast import Contrast
from workloads.training.lm import SIZES as TEXTS
from workloads.training.vit import SIZES as VIT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make ready VENV=.venv-torch WITH=torch")
from workloads.contrast import sides, torch_models  # noqa: E402 - needs PyTorch

IMAGES = VIT["small"].but(batch=2, image=8, patch=4, width=16, classes=4)
TEXT = TEXTS["small"].but(batch=2, tokens=8, vocabulary=16, width=16)


def findings(model, *, first=sides.jax_side, other=lambda model: sides.torch_side(model, compiled=False), rtol=1e-3):
    """What is said of JAX against PyTorch as it is, without a clock."""
    asked = Contrast(sides={"jax": lambda: first(model), "torch": lambda: other(model)}, amount=model.amount, rtol=rtol)
    return compare(asked, alone=None).problems


@pytest.mark.parametrize("model", [models.of_images(IMAGES), models.of_texts(TEXT)], ids=["vit", "lm"])
def test_the_same_model_is_the_same_in_both(model):
    """Logits, loss, five steps, weights and products agree."""
    assert findings(model) == []


def test_labels_as_indices_in_a_loss_of_one_hot_vectors():
    """Nothing raises: an index broadcasts over all classes."""

    def one_hot(logits, labels):
        return -jnp.mean(
            jnp.sum(labels[..., None] * (logits - jnp.log(jnp.sum(jnp.exp(logits), -1, keepdims=True))), -1)
        )

    (found,) = findings(models.of_images(IMAGES), first=lambda model: sides.jax_side(model, one_hot))
    assert found.startswith("results: loss function of torch")
    assert "indices or one-hot" in found


def test_tf32_on_one_side():
    """On a CPU the results are the same; what PyTorch is allowed is not."""
    torch.set_float32_matmul_precision("high")
    try:
        found = findings(models.of_images(IMAGES))
    finally:
        torch.set_float32_matmul_precision("highest")
    assert "precision: products of torch against jax: float32, float32 by fewer bits against float32" in found


def test_fused_attention_on_one_side(monkeypatch):
    """The results agree, so that nothing else would show it."""

    def fused(qkv, heads, *, causal):
        batch, tokens, triple = qkv.shape
        query, key, value = qkv.reshape(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return out.transpose(1, 2).reshape(batch, tokens, triple // 3)

    monkeypatch.setattr(torch_models, "attend", fused)
    found = findings(models.of_texts(TEXT))
    assert any(one.startswith("attention: torch against jax: _scaled_dot_product_") for one in found)
    assert not any("results" in one for one in found)  # nothing else shows it


def test_a_collate_function_that_calls_jnp():
    """The batch is handed over as NumPy again, and its type says nothing."""

    def collating(model):
        made = sides.torch_side(model, compiled=False)
        return replace(
            made, load=lambda: torch.from_numpy(np.array(jnp.stack([jnp.asarray(one) for one in model.inputs])))
        )

    (found,) = findings(models.of_images(IMAGES), other=collating)
    assert found.startswith("input pipeline: the collate function of torch uses JAX for each batch (")


def test_images_in_the_other_layout_taken_as_they_lie():
    """Reshaped, not transposed: the shapes fit and the pixels are others."""
    model = replace(
        models.of_images(IMAGES), for_torch=lambda images: images.reshape(len(images), 3, *images.shape[1:3])
    )
    (found,) = findings(model)
    assert found.startswith("results: logits of torch")
    assert "NHWC, NCHW" in found


def test_images_that_every_step_turns_round():
    """The same results, and a copy of the batch in each step."""

    class Turning(torch_models.ViT):
        def forward(self, images):
            return super().forward(images.permute(0, 3, 1, 2).contiguous())

    model = replace(models.of_images(IMAGES), in_torch=lambda: Turning(IMAGES), for_torch=np.ascontiguousarray)
    (found,) = findings(model)
    assert found.startswith(f"layouts: torch against jax: each step copies {2 * 8 * 8 * 3 * 4:,} bytes of inputs")


@pytest.mark.parametrize("decays", [(0.0, 0.0), (0.1, 0.1)], ids=["none", "on every array"])
def test_another_decay(decays):
    """In five steps it moves a weight by less than a thousandth of it: what training moved is compared, not the weights."""

    def decaying(model):
        made = sides.torch_side(model, compiled=False)
        for group, decay in zip(made.state[1].param_groups, decays, strict=True):
            group["weight_decay"] = decay
        return made

    (found,) = findings(models.of_images(IMAGES), other=decaying)
    assert found.startswith(("results: loss of torch", "results: weights after training of torch"))


def test_a_convolution_in_bfloat16_on_one_side():
    """PyTorch has a setting for convolutions alone, and the results are nearly the same."""
    before, torch.backends.mkldnn.conv.fp32_precision = torch.backends.mkldnn.conv.fp32_precision, "bf16"
    try:
        found = findings(models.of_images(IMAGES), rtol=0.5)
    finally:
        torch.backends.mkldnn.conv.fp32_precision = before
    assert found == ["precision: products of torch against jax: float32, float32 by fewer bits against float32"]


def test_a_step_that_is_said_to_be_compiled_and_is_not():
    """A claim that compiling pays would hold of two eager steps."""
    with pytest.raises(RuntimeError, match="expected a compiled step, found that PyTorch compiled nothing"):
        findings(
            models.of_images(IMAGES),
            other=lambda model: replace(sides.torch_side(model, compiled=False), compiled=True),
        )


def test_a_layer_less():
    smaller = IMAGES.but(layers=1)
    model = replace(models.of_images(IMAGES), in_torch=lambda: models.in_torch("ViT", smaller))
    found = findings(model)
    assert found[0].startswith("results: weights of torch at blocks.1.")
    assert any(one.startswith("work") for one in found)


@pytest.mark.parametrize("case", CONTRASTS, ids=[case.name for case in CONTRASTS])
def test_each_size_can_be_built(case):
    for build in case.sizes.values():
        assert list(build().sides) == ["jax", "torch eager", "torch compiled"]
