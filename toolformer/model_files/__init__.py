"""Files of models and indexes that services, gateway and jobs read: whether they are what was written, and make sense.

A package of its own, since images of single services hold nothing else of ``toolformer``.

- ``digests.py``: the list of a folder's digests, and whether the files still have them
- ``config.py``: ``config.json`` with sizes that can be
- ``home.py``: where the bundled models are (``bundled`` is a link to them)
- ``whole.py``: files that are written whole or not at all, and whether an error says that nothing more can be written
- ``fasttext.py``: whether a fastText file can be given to the library
"""
