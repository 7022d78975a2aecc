"""``python -m tests.cli.reproduce.fake_step FILE TEXT [STATUS]``: prints the text, adds a line to the file (a product),
and ends with the status."""

import sys
from pathlib import Path

file, text, *status = sys.argv[1:]
sys.stdout.write(f"says {text}\n")
if not status:
    with Path(file).open("a") as product:
        product.write(f"{text}\n")
sys.exit(int(status[0]) if status else 0)
