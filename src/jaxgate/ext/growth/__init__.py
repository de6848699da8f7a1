"""Laws of growth: how facts follow the size of a case, from sizes that are only compiled."""
