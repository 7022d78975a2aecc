"""What `vllm_pauses.py` measures: `ways` are the backends with what each counts, `load` is what they are asked for, the
tools that answer, and what came of it, `random_model` a model that computes much and calls a tool."""
