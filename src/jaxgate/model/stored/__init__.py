"""What is stored of a case: its baseline, its program, its times and what is waived."""
