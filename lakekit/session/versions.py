"""The tested set of versions, and the jar coordinates that belong to what is installed."""

from __future__ import annotations

import re
import sys
from importlib import metadata

from lakekit.errors import SetupError

TESTED = {"pyspark": "4.0.0", "delta-spark": "4.0.0"}
"""Versions the tests run with; any patch release of the same minor version is accepted."""

SCALA = "2.13"
"""The only Scala that Spark 4 is built for; part of every artifact's name."""

KAFKA = "4.1.0"
"""The Kafka that a warehouse can have of its own."""

LOG4J = "2.24.3"
"""What Kafka itself comes with, and its jars do not ask for."""

_REQUIREMENTS = [f"{package}=={version}" for package, version in TESTED.items()]
_INSTALL = "Install the tested set with: pip install " + " ".join(f'"{each}"' for each in _REQUIREMENTS)


def installed(package: str) -> str | None:
    """Returns the version of an installed package, or None.

    Images that put Spark's own Python folder on the path have a pyspark without package metadata.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        if package != "pyspark":
            return None
    try:
        from pyspark.version import __version__
    except ImportError:
        return None
    return str(__version__)


def minor(version: str) -> tuple[int, int]:
    """Returns major and minor number of a version text."""
    numbers = re.findall(r"\d+", version)
    return int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0


def check_packages() -> None:
    """Checks that the installed packages are of the tested minor versions.

    Raises:
        SetupError: naming the package that is missing or does not fit.
    """
    for package, tested in TESTED.items():
        version = installed(package)
        if version is None:
            raise SetupError(f"The package {package} is not installed.", f"{_INSTALL}.")
        if minor(version) != minor(tested):
            wanted = ".".join(map(str, minor(tested)))
            raise SetupError(f"lakekit needs {package} {wanted}, but {version} is installed.", f"{_INSTALL}.")
    pandas = installed("pandas")
    if pandas is not None and minor(pandas)[0] >= 3:
        # pyspark 4.0 turns None into the text 'NaN' with pandas 3: silent damage, so refuse.
        raise SetupError(
            f"pandas {pandas} is installed, and Spark 4.0 reads missing values wrongly from pandas 3.",
            'Install an older one with: pip install "pandas<3".',
        )


def delta_coordinates() -> list[str]:
    """Returns the Maven coordinates of Delta for the installed delta-spark package."""
    version = installed("delta-spark") or TESTED["delta-spark"]
    return [f"io.delta:delta-spark_{SCALA}:{version}"]


def kafka_coordinates() -> list[str]:
    """Returns the Maven coordinates of the embedded Kafka, and of what writes its log."""
    return [f"org.apache.kafka:kafka_{SCALA}:{KAFKA}", f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J}"]


if __name__ == "__main__":
    # For pip: an environment with exactly what the tests run with.
    sys.stdout.write(" ".join(_REQUIREMENTS) + "\n")
