"""C*: the calls that were kept, of all tools, put into their texts; the baseline C of the same texts; and what to say
of both: a table, examples, a page to look at them.

- ``kept.py``: gathers the kept calls of each text; ``choosing.py``: which of them are in it, and where
- ``putting.py``: texts with calls, in segments; ``writing.py``: the files
- ``table.py``: counts at several thresholds; ``examples.py`` and ``report.py``: the page
"""
