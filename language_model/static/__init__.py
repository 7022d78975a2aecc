"""GPT-J's decode step over tensors of fixed shapes and addresses, which a GPU can replay as one CUDA graph."""
