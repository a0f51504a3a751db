"""A folder of files that a stream reads, and the rows that they come to."""

from __future__ import annotations

import json
import os
import time

KEYS = 240
_APART = 4
"""Files in a row that have no key in common.

If a stream dies after Spark has noted a new file, and before it has noted the micro-batch, that one gets the next file,
too, and Spark does not say in which order.
"""


class Source:
    """Files of changes of the keys below `KEYS`, each with a later time than the one before."""

    def __init__(self, folder, rng):
        self.folder = folder
        folder.mkdir(parents=True)
        self._rng = rng
        self._first = time.time() - 86_400
        self.files = 0
        self._number = 0
        self.rows = {}

    def add(self, rows=60):
        """Adds a file, whole in one moment."""
        os.rename(*self.prepare(rows))

    def prepare(self, rows=60):
        """Returns the hidden name of a new file, and the name with which it counts."""
        changes = [self._change() for _ in range(rows)]
        hidden = self.folder / f".new-{self.files}"
        hidden.write_text("".join(json.dumps(change) + "\n" for change in changes))
        moment = self._first + self.files
        os.utime(hidden, (moment, moment))
        shown = self.folder / f"part-{self.files:05}.json"
        self.files += 1
        return str(hidden), str(shown)

    def _change(self):
        self._number += 1
        key = self._rng.randrange(KEYS // _APART) * _APART + self.files % _APART
        if self._rng.random() < 0.2:
            self.rows.pop(key, None)
            return {"id": key, "_change_kind": "-D"}
        row = {"id": key, "n": self._number, "text": f"row {self._number} of key {key}"}
        self.rows[key] = row
        return {**row, "_change_kind": "+U"}


class Script:
    """Writes of rows beside the stream, with keys of their own; a write that was not confirmed is done again."""

    def __init__(self, rng, first_key):
        self._rng = rng
        self._first_key = first_key
        self._next = 1
        self.rows = {}

    def next(self):
        """Returns the next write."""
        epoch, self._next = self._next, self._next + 1
        keys = sorted(self._rng.sample(range(self._first_key, self._first_key + 80), 30))
        if epoch % 3 == 0:
            for key in keys:
                self.rows.pop(key, None)
            return {"epoch": epoch, "upserts": [], "deletes": keys}
        rows = [{"id": key, "n": epoch, "text": f"write {epoch} of key {key}"} for key in keys]
        self.rows |= {row["id"]: row for row in rows}
        return {"epoch": epoch, "upserts": rows, "deletes": []}
