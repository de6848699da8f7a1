"""Small projects of other people's libraries, gated as their authors wrote them, and mistakes planted into each."""
