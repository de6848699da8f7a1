"""What one observation of a case saw, by whichever instrument."""
