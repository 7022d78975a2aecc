"""Causal language models other than GPT-J, computed by transformers' modules.

``together.py`` takes all tokens of a step through the model at once, with this project's cache behind transformers'
attention interface: for the architectures that are tested so. ``one_by_one.py`` takes any other that attends to all
that came before, one row after the other. ``from_transformers.py`` loads a model and picks one; ``base.py`` has what
they share.

transformers' own continuous batching is not used: for GPT-J it gives wrong tokens without a word, and it cannot pause.
"""
