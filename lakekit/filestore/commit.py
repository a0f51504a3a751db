"""Puts a commit into the Delta log: atomically, idempotently, and only where nothing stands in its way."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakekit.filestore.conflicts import Footprint, Verdict, judge
from lakekit.logstore.positions import FIELD as LOG_FIELD
from lakekit.logstore.positions import LogNote, newest_note
from lakekit.storage.actions import Action, CommitInfo, Txn
from lakekit.storage.log import DeltaLog, open_log

_log = logging.getLogger("lakekit")

CHECKPOINT_INTERVAL = 10
"""Commits between checkpoints, unless the table says otherwise (`delta.checkpointInterval`)."""


@dataclass(frozen=True)
class Proposal:
    """A commit that is ready but for its version.

    Attributes:
        read_version: the version it was computed from.
        actions: what it does, without commitInfo and txn.
        footprint: what it rests on.
        operation: name shown in the table's history.
        parameters, metrics: shown there too; values are texts.
        log_note: what it says about the table's log, if that is on.
    """

    read_version: int
    actions: Sequence[Action]
    footprint: Footprint
    operation: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, str]
    log_note: LogNote | None = None


@dataclass(frozen=True)
class Outcome:
    """How a proposal ended: with its version if committed, else with the version that stood in the way."""

    verdict: Verdict
    version: int


def commit(root: str, proposal: Proposal, engine: str) -> Outcome:
    """Commits a proposal as the next version, stepping over commits of others that do not concern it.

    Runs where the storage can be reached. The log file is put only if absent; every commit carries a unique id
    (`commitInfo.txnId`), so that our own commit is known as ours even if the reply to the put was lost.

    Returns:
        Verdict.GO_ON and our version; or another verdict and the version that decided it.
    """
    log = open_log(root)
    commit_id = str(uuid.uuid4())
    version = proposal.read_version + 1
    while True:
        if log.write(version, _lines(proposal, engine, log, version), commit_id):
            _checkpoint(log, version)
            return Outcome(Verdict.GO_ON, version)
        verdict = judge(proposal.footprint, log.commit_actions(version))
        if verdict is not Verdict.GO_ON:
            return Outcome(verdict, version)
        version += 1


def _lines(proposal: Proposal, engine: str, log: DeltaLog, version: int) -> list[Action]:
    now = int(time.time() * 1000)
    info = {
        "timestamp": now,
        "operation": proposal.operation,
        "operationParameters": dict(proposal.parameters),
        "readVersion": proposal.read_version,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": dict(proposal.metrics),
        "engineInfo": engine,
    }
    if proposal.log_note is not None:
        note = proposal.log_note
        info[LOG_FIELD] = note.fields(newest_note(log, version - 1, note.topic))
    actions: list[Action] = [CommitInfo(info)]
    if proposal.footprint.txn is not None:
        writer, epoch = proposal.footprint.txn
        actions.append(Txn(writer, epoch, now))
    return [*actions, *proposal.actions]


def _checkpoint(log: DeltaLog, version: int) -> None:
    """Writes a checkpoint when one is due; the commit stands whether it can or not."""
    try:
        interval = log.snapshot().configuration.get("delta.checkpointInterval", str(CHECKPOINT_INTERVAL))
        if version % int(interval) == 0:
            log.checkpoint(version)
    except Exception as error:
        _log.warning("Version %d was committed, but its checkpoint failed: %s", version, error)
