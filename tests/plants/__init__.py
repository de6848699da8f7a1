"""Mistakes planted into the suite's own workloads: each must turn its case red and be named as the culprit."""
