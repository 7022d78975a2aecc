"""Pin what all roles of pyproject.toml need: ``python .ci/lock.py UV [OPTIONS]``, run by ``make lock``.

uv resolves all roles together, and then each alone in those versions, to learn which packages it needs. It writes
the roles behind each package of the lock file; ``cli/roles.py`` reads them there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

LOCK = Path("requirements.lock")
COMPILE = ["pip", "compile", "--quiet", "--python-version", "3.11", "--no-header", "--annotation-style", "line"]


def main(uv: str, options: Sequence[str]) -> None:
    """Write the lock file anew, with its versions kept unless ``options`` of uv say otherwise."""
    roles = read_roles()
    names = "\n".join(sorted({name for named in roles.values() for name in named}))
    resolve([uv, *COMPILE, *options, "--generate-hashes", "-o", str(LOCK), "-"], names)
    needed: dict[str, list[str]] = {}
    for role, named in sorted(roles.items()):
        for line in resolve([uv, *COMPILE, "-c", str(LOCK), "-"], "\n".join(named)).splitlines():
            if pin := re.match(r"([a-z0-9-]+)==", line):
                needed.setdefault(pin[1], []).append(role)
    entries = re.split(r"\n(?=\S)", LOCK.read_text().strip())
    LOCK.write_text("".join(f"{entry}\n    # for {', '.join(needed[entry.partition('==')[0]])}\n" for entry in entries))


def read_roles() -> dict[str, list[str]]:
    """What each role names: the package itself, its extras, and the groups."""
    project = tomllib.loads(Path("pyproject.toml").read_text())
    roles: dict[str, list[str]] = {
        "base": project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
        **project["dependency-groups"],
    }
    return {role: list(flat(roles, role)) for role in roles}


def flat(roles: Mapping[str, Sequence[str]], role: str) -> set[str]:
    """The packages that a role names, and those of the roles that it names."""
    found = set[str]()
    for entry in roles[role]:
        inner = re.fullmatch(r"toolformer\[(.+)]", entry)
        found |= set().union(*(flat(roles, one) for one in inner[1].split(","))) if inner else {entry}
    return found


def resolve(command: Sequence[str], names: str) -> str:
    """What uv writes; its complaints go where ours would."""
    return subprocess.run(command, input=names, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
