"""A run as numbers for a monitoring system."""
