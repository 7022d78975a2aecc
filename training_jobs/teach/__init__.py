"""What ``toolformer teach`` needs beside the stages, each a job of its own.

- ``varying.py``: texts around a tool's demonstrations, where there are none
- ``form.py``: whether a model follows the prompt's form at all, before hours of annotation
- ``proposing.py``: calls from a file or a rule in the model's place
- ``holding_out.py``: the texts that are asked about and never trained on
"""
