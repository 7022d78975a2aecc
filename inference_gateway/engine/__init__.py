"""The local engine: continuous batching on a GPT-J, with sequences that can pause."""
