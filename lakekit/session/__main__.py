"""``python -m lakekit.session``: gets everything a local session needs, and says what it found."""

from __future__ import annotations

import sys

from lakekit.errors import LakeError
from lakekit.session import archive, jars, versions
from lakekit.session.java import find_java


def main() -> int:
    """Checks packages and Java and fetches the jars; returns the exit code."""
    try:
        versions.check_packages()
        java = find_java()
        found = jars.resolve(versions.delta_coordinates())
        if versions.installed("aiokafka"):
            found += jars.resolve(versions.kafka_coordinates())
    except LakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    try:
        if not archive.archive_of(java).is_file():
            sys.stdout.write("Making an archive of Spark's classes, once: a minute.\n")
            sys.stdout.flush()
        archive.make(java)
    except LakeError as error:
        sys.stderr.write(f"{error}\n")
    packages = ", ".join(f"{name} {versions.installed(name)}" for name in versions.TESTED)
    sys.stdout.write(
        f"Ready: {packages}, Java {java.version} in {java.home}, {len(set(found))} jars in the cache.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
