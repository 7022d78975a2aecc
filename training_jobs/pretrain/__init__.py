"""Pretraining: a vocabulary, rows of ids, and the loop that trains a small GPT-J on them."""
