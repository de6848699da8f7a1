"""Gaussian regression: one factorisation for all right-hand sides, and the few best of many candidates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from jaxgate.model.computation import Computation

POINTS, TARGETS, CANDIDATES, BEST = 48, 4, 256, 8


def weights_of(kernel, targets):
    """Solve for the weights of the points."""
    return jsl.cho_solve(jsl.cho_factor(kernel), targets)


def choose(kernel, targets, candidates):
    """Predict all candidates, and give the best of each target."""
    predicted = candidates @ weights_of(kernel, targets)
    best, places = jax.lax.top_k(predicted.T, BEST)
    return best, places


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    points = random.normal(size=(POINTS, 8)).astype(np.float32)
    distances = ((points[:, None] - points) ** 2).sum(-1)
    kernel = (np.exp(-distances) + np.eye(POINTS)).astype(np.float32)
    targets = random.normal(size=(POINTS, TARGETS)).astype(np.float32)
    candidates = random.normal(size=(CANDIDATES, POINTS)).astype(np.float32)
    return Computation(subject=jax.jit(choose), args=(jnp.asarray(kernel), targets, candidates))
