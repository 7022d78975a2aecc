"""What ``toolformer teach`` needs beside the stages, each a job of its own.

- ``varying.py``: texts around a tool's demonstrations, where there are none
- ``form.py``: whether a model follows the prompts' form at all, before hours of annotation
- ``proposing.py``: calls from a file or a rule in the model's place
- ``trusting.py``: calls that are known to be right, kept without a filter
- ``holding_out.py``: the texts that are asked about and never trained on
- ``searching_on.py``: texts in which a second search answers what the first one did not, for a second round
"""
