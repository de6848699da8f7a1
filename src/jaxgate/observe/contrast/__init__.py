"""The sides of a contrast, run: whether they agree, what their frameworks say of them, how long a step takes."""
