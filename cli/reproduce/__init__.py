"""``toolformer reproduce``: from texts that the project writes to the table of four rows, with a second round.

- ``settings.py``: the numbers of a run in two settings, ``short`` and ``full``; ``options.py``: an option for each
- ``plan.py``: the steps, each a job's command line; ``models.py``: the models that go through them
- ``running.py``: the steps one after the other, each a process with a log; services and gateways beside them
- ``marks.py``: what is done, kept in the run's folder; ``counts.py``: what each step counted
- ``manifest.py``: versions, settings, counts, hashes and seconds of all steps
- ``__main__.py``: the command
"""
