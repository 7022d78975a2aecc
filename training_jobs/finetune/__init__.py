"""Finetuning M on C*, or on C for the baseline (section 4.1 of the paper), with transformers' Trainer.

- ``__main__.py``: the command; ``recipe.py``: its numbers, with the paper's as defaults
- ``texts.py``: C*, C and held-out texts from files; ``../text_encoder.py``: their ids, as at inference
- ``steps.py``: which texts form a step, and how they are dealt to micro-batches and processes
- ``gptj.py``: transformers' GPT-J with fast attention and a loss that makes no more logits than it needs
- ``models.py``: the model as it is trained, LoRA, and the checkpoint as it is published
- ``trainer.py``: the Trainer; ``checkpoints.py``: which checkpoints are whole; ``curves.py``: loss and perplexity
- ``processes.py``: several processes, sharded; ``configurations/``: FSDP2 and DeepSpeed ZeRO-3
"""
