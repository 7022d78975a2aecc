"""``toolformer reproduce``: from texts that the project writes to the table of four rows, with a second round.

- ``settings.py``: the numbers of a run in three settings, and an option for each
- ``plan.py``: the steps, each a job's command line, and the models that go through them
- ``running.py``: the steps one after the other, each a process with a log; services and gateways beside them
- ``marks.py``: what is done, kept in the run's folder, and its manifest; ``counts.py``: what each step counted
- ``__main__.py``: the command
"""
