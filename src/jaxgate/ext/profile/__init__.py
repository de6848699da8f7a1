"""A red case explains itself: both programs profiled, and what takes longer."""
