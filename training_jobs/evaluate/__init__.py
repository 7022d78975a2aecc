"""Evaluation: the paper's benchmarks and the project's own suites, for any model behind an OpenAI completions endpoint.

``suites.py`` names every suite; ``readers/`` and ``dateset.py`` bring its examples, ``prompts.py`` asks
them, ``scoring.py`` judges. ``model.py`` is the server, ``run.py`` asks it, ``answers.py`` keeps what it said;
``perplexity.py`` and ``texts.py`` measure texts. ``scores.py``, ``tables.py`` and ``page.py`` say what came of it.
"""
