"""The table options there are: names, allowed values, defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakekit.errors import InvalidOptionError

PREFIX = "lake."
"""Prefix of options in the table's configuration."""
MAX_BUCKETS = 32_768

_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)\Z")
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):\d{1,5}\Z")
_OFFSETS = re.compile(r"partition:\d+,offset:\d+(?:;partition:\d+,offset:\d+)*\Z")
_INTERVAL = re.compile(
    r"(?:interval\s+)?(?:\d+\s+(?:micro|milli)?(?:second|minute|hour|day|week)s?\s*)+\Z", re.IGNORECASE
)
SECRET = re.compile(
    r"jaas|password|passwd|passphrase|secret|token|credential|keytab|ssl\.key|private[.-]?key|access[.-]?key"
)
"""Option names that hold secrets."""


def _boolean(text: str) -> str:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered


def _integer(low: int, high: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(r"\d+", text) or not low <= int(text) <= high:
            raise ValueError
        return str(int(text))

    return parse


def _fraction(text: str) -> str:
    if not 0 < float(text) <= 1:
        raise ValueError
    return str(float(text))


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError
        return text.lower()

    return parse


def _size(text: str) -> str:
    if size_in_bytes(text) < 1 << 20:
        raise ValueError
    return re.sub(r"\s+", "", text.lower())


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not pattern.match(text):
            raise ValueError
        return text

    return parse


def _addresses(text: str) -> str:
    if text.strip().lower() == "embedded":
        return "embedded"
    servers = [server.strip() for server in text.split(",")]
    if not all(_ADDRESS.match(server) for server in servers):
        raise ValueError
    return ",".join(servers)


def _emit_mode(text: str) -> str:
    modes = sorted({mode.strip().lower() for mode in text.split(",")})
    if modes not in (["auto"], ["file"], ["log"], ["file", "log"]):
        raise ValueError
    return ",".join(modes)


def _nonempty(text: str) -> str:
    if not text:
        raise ValueError
    return text


def size_in_bytes(text: str) -> int:
    """Returns the bytes that a text such as ``128mb`` or ``1.5 gb`` stands for (units are powers of 1024).

    Raises:
        ValueError: if the text is no size.
    """
    match = _SIZE.match(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(text)
    return int(float(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True)
class Option:
    """One table option.

    Attributes:
        name: the name without prefix.
        default: text of the default, or None.
        allowed: what values fit, in words.
        description: what the option does.
        parse: returns the text to store; raises ValueError for a text that does not fit.
        hint: whether it may be given for one statement, as ``/*+ OPTIONS('name'='value') */``.
        fixed: whether it can only be given when the table is created.
    """

    name: str
    default: str | None
    allowed: str
    description: str
    parse: Callable[[str], str]
    hint: bool = False
    fixed: bool = False

    @property
    def stored_name(self) -> str:
        """The name in the table's configuration."""
        return PREFIX + self.name

    def checked(self, value: object) -> str:
        """Returns the text to store for a value.

        Raises:
            InvalidOptionError: if the value does not fit.
        """
        text = ("true" if value else "false") if isinstance(value, bool) else str(value).strip()
        try:
            return self.parse(text)
        except ValueError:
            raise InvalidOptionError.bad_value(self.name, value, self.allowed) from None


_COUNT = _integer(1, 2**31 - 1)
_BOOL = "true or false"

OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        Option("bucket", None, f"a whole number from 1 to {MAX_BUCKETS}",
               "Buckets in each partition; fixed for the life of the table.", _integer(1, MAX_BUCKETS),
               fixed=True),
        Option("expected-rows", None, "a whole number from 1",
               "Rows that the table, or each of its partitions, will grow to; chooses the number of buckets.",
               _integer(1, 2**63 - 1), fixed=True),
        Option("sequence.field", None, "the name of a column",
               "Column whose highest value wins among rows of one key; without it the last written wins.",
               _nonempty, fixed=True),
        Option("target-file-size", "128mb", "a size of at least 1mb, for example 128mb",
               "Size at which a sorted run continues in a new file.", _size),
        Option("compaction.auto", "true", _BOOL, "Compact in the background after commits.", _boolean),
        Option("compaction.num-runs", "5", "a whole number from 2",
               "Sorted runs in a bucket that trigger a compaction.", _integer(2, 2**31 - 1)),
        Option("compaction.size-amplification-percent", "200", "a whole number from 1",
               "Size of the newer runs, in percent of the oldest, that triggers a compaction.", _COUNT),
        Option("compaction.size-ratio", "1", "a whole number from 0 to 100",
               "Percent by which the next run may be larger and still be taken along.", _integer(0, 100)),
        Option("compaction.deleted-ratio", "0.3", "a number above 0, at most 1",
               "Share of superseded rows in a bucket that triggers a compaction.", _fraction),
        Option("log-store.enabled", "false", _BOOL, "Also write changes to the log.", _boolean),
        Option("log-store.type", "kafka", "kafka", "Kind of the log.", _one_of("kafka")),
        Option("log-store.topic", None, "a Kafka topic name (letters, digits, '.', '_', '-')",
               "Topic of the log.", _matching(_TOPIC)),
        Option("log-store.address", None, "host:port, several separated by commas, or embedded",
               "Servers of the log; embedded is a Kafka that belongs to the warehouse.", _addresses),
        Option("log-store.partitions", None, "a whole number from 1 to 10000",
               "Partitions of a topic that lakekit makes; by default as many as buckets.", _integer(1, 10_000)),
        Option("log-store.retention-ms", None, "milliseconds from 1",
               "How long a topic that lakekit makes keeps records; by default as the Kafka does.",
               _integer(1, 2**63 - 1)),
        Option("log-store.data-format", "json", "json", "Format of the log's records.", _one_of("json")),
        Option("log-store.data-version", "v1", "v1", "Version of the log's record format.", _one_of("v1")),
        Option("log-store.consistency-guarantee.enabled", "false", _BOOL,
               "Readers of the log retract what a failed writer sent in vain.", _boolean, hint=True),
        Option("log.consumer.changelog.modes", "all-kinds", "all-kinds or append-only",
               "Kinds of rows a reader of the log gets.", _one_of("all-kinds", "append-only"), hint=True),
        Option("scan.startup.mode", "latest", "latest, earliest, timestamp, specific-offsets or full",
               "Where a reader of the log starts; full is the table first, then its log.",
               _one_of("latest", "earliest", "timestamp", "specific-offsets", "full"), hint=True),
        Option("scan.startup.timestamp-millis", None, "milliseconds since 1970-01-01 UTC",
               "Start of a reader whose scan.startup.mode is timestamp.", _integer(0, 2**63 - 1), hint=True),
        Option("scan.startup.specific-offsets", None, "partition:0,offset:42;partition:1,offset:300",
               "Start of a reader whose scan.startup.mode is specific-offsets.", _matching(_OFFSETS),
               hint=True),
        Option("emit.mode", "auto", "auto, file, log, or file,log", "Where a write goes.", _emit_mode,
               hint=True),
        Option("read.mode", "file", "file or log", "Where a streaming read comes from.",
               _one_of("file", "log"), hint=True),
    )
}  # fmt: skip
"""All table options by name."""

_delta_interval = _matching(_INTERVAL)

DELTA_OPTIONS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "delta.appendOnly": (_BOOL, _boolean),
    "delta.autoOptimize.autoCompact": (_BOOL, _boolean),
    "delta.autoOptimize.optimizeWrite": (_BOOL, _boolean),
    "delta.checkpoint.writeStatsAsJson": (_BOOL, _boolean),
    "delta.checkpoint.writeStatsAsStruct": (_BOOL, _boolean),
    "delta.checkpointInterval": ("a whole number from 1", _COUNT),
    "delta.checkpointRetentionDuration": ("an interval such as 'interval 2 days'", _delta_interval),
    "delta.dataSkippingNumIndexedCols": ("a whole number, or -1 for all columns", lambda t: str(int(t))),
    "delta.dataSkippingStatsColumns": ("names of columns separated by commas", _nonempty),
    "delta.deletedFileRetentionDuration": ("an interval such as 'interval 7 days'", _delta_interval),
    "delta.enableChangeDataFeed": (_BOOL, _boolean),
    "delta.enableDeletionVectors": (_BOOL, _boolean),
    "delta.enableExpiredLogCleanup": (_BOOL, _boolean),
    "delta.isolationLevel": ("Serializable", lambda text: _one_of("serializable")(text).capitalize()),
    "delta.logRetentionDuration": ("an interval such as 'interval 30 days'", _delta_interval),
    "delta.randomizeFilePrefixes": (_BOOL, _boolean),
    "delta.setTransactionRetentionDuration": ("an interval such as 'interval 7 days'", _delta_interval),
    "delta.targetFileSize": ("a size such as 128mb", _size),
    "delta.tuneFileSizesForRewrites": (_BOOL, _boolean),
}
"""Properties of Delta Lake that are handed on: allowed values in words, and what checks them."""

DELTA_PROTOCOL = re.compile(
    r"delta\.(feature\..*|minReaderVersion|minWriterVersion|columnMapping\..*|enableRowTracking|enableTypeWidening"
    r"|enableInCommitTimestamps.*|enableIcebergCompat.*|universalFormat\..*|checkpointPolicy|constraints\..*|identity\..*"
    r"|rowTracking.*|coordinatedCommits.*|inCommitTimestamp.*|clusteringColumns|compatibility\..*"
    r"|requireCheckpointProtectionBeforeVersion|enableVariantShredding)\Z",
    re.IGNORECASE,
)
"""Properties of Delta Lake that change what a reader or writer must support."""
