"""Many texts at once: reading them behind a shared prompt, branching off samples, scoring. What the jobs ask of
a model.

``interface.py`` says what that is. ``gptj.py`` does it for GPT-J with as little computation as it takes, ``rows.py``
for whatever transformers loads, ``server.py`` over HTTP on a vLLM-like server; ``loading.py`` picks one.
"""
