"""The suite in another environment, and one answer: may I upgrade?"""
