"""A process that writes into a table until it dies: ``python -m tests.crash.writer warehouse table source``.

It takes commands as lines of JSON, and answers each with one. `Writer` in `harness` is the other side.
"""

from __future__ import annotations

import json
import os
import sys

import lakekit
from tests.crash import points

ANSWER = "@answer "
SOURCE = "id BIGINT, n BIGINT, text STRING, _change_kind STRING"
ROW = "id BIGINT, n BIGINT, text STRING"


class Child:
    """Does what the commands say."""

    def __init__(self, warehouse, table, source):
        self.doom = points.Doom()
        points.install(self.doom)
        self.lake = lakekit.connect(warehouse, config={"spark.driver.memory": "1g"})
        self.table_name, self.source = table, source
        self.ingestion = None

    @property
    def table(self):
        return self.lake.table(self.table_name)

    def arm(self, point, hit=1, after=0.0):
        if point == points.RANDOM:
            self.doom.arm_timer(after)
        else:
            self.doom.arm(point, hit)

    def limits(self, batch, changes):
        """Makes few rows many, so that Spark's tasks write and send them."""
        from lakekit.ingest import sink
        from lakekit.table import log

        sink.FEW_ROWS, log.FEW_ROWS = batch, changes

    def stream(self, interval):
        rows = self.lake.spark.readStream.schema(SOURCE).option("maxFilesPerTrigger", 1).json(self.source)
        self.ingestion = self.table.write_stream(rows, interval=interval)

    def meanwhile(self, point, names):
        """At a point, lets the stream take one more file."""

        def more():
            os.rename(*names)
            self.take_all()

        self.doom.hooks[point] = more

    def take_all(self):
        """Waits until the log has all that the source has."""
        self.ingestion._query.processAllAvailable()

    def drain(self):
        """Waits until both stores have all that the source has."""
        self.take_all()
        while self.ingestion.flush():
            pass
        status = self.ingestion.status
        assert status.state == "running", status
        assert status.pending_rows == 0, status

    def write(self, epoch, upserts, deletes):
        """Writes as script number `epoch`; doing it again changes nothing."""
        if upserts:
            self.table.upsert(upserts, writer_id="script", epoch=epoch)
        else:
            keys = self.lake.spark.createDataFrame([(key,) for key in deletes], "id BIGINT")
            self.table.delete(keys, writer_id="script", epoch=epoch)


def main():
    child = Child(*sys.argv[1:])
    _tell({"ready": os.getpid()})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            getattr(child, command.pop("do"))(**command)
        except Exception as error:
            _tell({"error": f"{type(error).__name__}: {error}"})
        else:
            _tell({"done": True})
    os._exit(0)  # the parent is gone, or has seen enough


def _tell(answer):
    sys.stdout.write(ANSWER + json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
