"""Jobs that make a model that uses tools: corpus, annotate, execute, filter, merge, finetune, evaluate."""

import os

# torch reads this at its first allocation. In huge pages a CPU's large tensors cost a fault for 2 MiB instead of 4 KiB;
# pretraining the small model took 0.6 to 0.8 of the time on a busy machine.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
