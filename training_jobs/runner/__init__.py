"""The runner of a stage, whatever it does: chunks that no kill loses, workers, ranks, progress.

- ``running.py``: one stage from input file to output file; ``pool.py``: its worker processes,
  ``on_ray.py``: or its workers on Ray
- ``chunks.py``: the input in chunks of a fixed number of lines; ``parts.py``: finished chunks on disk, and joining them
- ``ranks.py``: which chunks are this process' own where several machines share a stage
- ``progress.py``: a bar on a terminal, lines elsewhere
- ``work.py``: what a stage gives the runner
"""
