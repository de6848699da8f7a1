"""Programs of baselines in an object store, so that a repository stays small."""
