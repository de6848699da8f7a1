"""Test files of projects that several tests gate."""

TWO = """
import jax, jax.numpy as jnp

def first(x):
    return x * 2

def second(x):
    return x + 1

def test_first(gate):
    gate(first, jnp.ones(8))

def test_second(gate):
    gate(second, jnp.ones(8))
"""
