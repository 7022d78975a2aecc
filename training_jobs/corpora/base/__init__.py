"""The small base model's training text: plain texts, texts under a heading that repeats a fact, and texts in the form
of the tools' prompts.

A model of a few million parameters has no in-context learning of its own, so it is shown the form of the prompts, with
calls placed and misplaced; which calls help it is not shown. With GPT-J nothing of the sort is needed.
"""
