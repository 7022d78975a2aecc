"""``python -m cli``: the ``toolformer`` command where the package is not installed."""

from cli.main import main

main()
