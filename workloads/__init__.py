"""The catalogue: one module per family, each a few pure builders with their claims beside them."""
