"""The models of ``workloads.training`` in PyTorch: a vision transformer and a language model. Imported by builders alone."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from workloads.parts import Extent
from workloads.training import vit
from workloads.training.states import EPSILON


class Block(nn.Module):  # type: ignore[misc]  # PyTorch is an extra, and Any where it is not installed
    """Attention, then two layers, each after a normalisation and added to what came in."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before = nn.LayerNorm(width, eps=EPSILON)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width, eps=EPSILON)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run one block: x [batch, tokens, width] to [batch, tokens, width]."""
        x = x + self.out(attend(self.qkv(self.before(x)), self.heads, causal=self.causal))
        return x + self.down(functional.gelu(self.up(self.between(x)), approximate="tanh"))


def attend(qkv: torch.Tensor, heads: int, *, causal: bool) -> torch.Tensor:
    """Self-attention, written out: queries, keys and values side by side [batch, tokens, 3 width] to [batch, tokens, width]."""
    batch, tokens, triple = qkv.shape
    width = triple // 3
    query, key, value = qkv.reshape(batch, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    scores = query @ key.transpose(-1, -2) * (width // heads) ** -0.5
    if causal:
        unseen = torch.ones(tokens, tokens, dtype=torch.bool, device=qkv.device).triu(1)
        scores = scores.masked_fill(unseen, -1e9)
    return (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)


class ViT(nn.Module):  # type: ignore[misc]  # PyTorch is an extra, and Any where it is not installed
    """Patches and a first token of its own, blocks, and a class read from that token."""

    def __init__(self, size: Extent) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size.width, size.patch, stride=size.patch)
        self.first = nn.Parameter(torch.zeros(1, 1, size.width))
        self.positions = nn.Parameter(torch.zeros(vit.patches_of(size) + 1, size.width))
        self.blocks = nn.ModuleList([Block(size.width, size.heads, causal=False) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(size.width, eps=EPSILON)
        self.head = nn.Linear(size.width, size.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Classify: images [batch, 3, image, image] to [batch, classes]."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(tokens), -1, -1), tokens], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class LM(nn.Module):  # type: ignore[misc]  # PyTorch is an extra, and Any where it is not installed
    """Embeddings, causal blocks, and logits by the same embeddings."""

    def __init__(self, size: Extent) -> None:
        super().__init__()
        self.embed = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Parameter(torch.zeros(size.tokens, size.width))
        self.blocks = nn.ModuleList([Block(size.width, size.heads, causal=True) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(size.width, eps=EPSILON)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Predict: tokens [batch, tokens] to logits [batch, tokens, vocabulary]."""
        x = self.embed(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embed.weight.T
