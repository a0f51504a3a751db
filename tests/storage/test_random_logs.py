"""Random histories: every way to a state gives the state of a plain model, and delta-rs agrees."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from lakekit.storage.actions import DeletionVector, Txn
from lakekit.storage.log import DeltaLog, commit_path
from tests.storage.tables import add, new_log

Model = dict[str, tuple[str | None, int]]


def random_commit(chance: random.Random, version: int, model: Model) -> list:
    """Changes the model and returns the actions of the change, in any order."""
    actions: list = [Txn("writer", version)]
    for path in chance.sample(sorted(model), min(len(model), chance.randint(0, 3))):
        vector, count = model.pop(path)
        old = None if vector is None else DeletionVector("u", vector, 1, 34, count)
        file = replace(add(path), deletion_vector=old)
        actions.append(file.remove(2**41, data_change=True))
        if chance.random() < 0.6:
            new = DeletionVector("u", f"{version:020d}", 1, 34, count + 1)
            actions.append(file.with_vector(new))
            model[path] = (new.path_or_inline, new.cardinality)
    for number in range(chance.randint(0, 3)):
        actions.append(add(f"f{version}-{number}"))
        model[f"f{version}-{number}"] = (None, 0)
    chance.shuffle(actions)
    return actions


def state_of(log: DeltaLog, version: int | None = None) -> Model:
    files = log.snapshot(version).files
    vectors = {path: file.deletion_vector for path, file in files.items()}
    return {path: (v.path_or_inline, v.cardinality) if v else (None, 0) for path, v in vectors.items()}


@pytest.mark.parametrize("seed", range(5))
def test_states_of_a_random_history(disk, seed):
    chance = random.Random(seed)
    writer, reader = new_log(disk), DeltaLog(disk)
    model: Model = {}
    states = [dict(model)]
    for version in range(1, 60):
        assert writer.write(version, random_commit(chance, version, model), f"c{version}")
        states.append(dict(model))
        if chance.random() < 0.2:
            writer.checkpoint(version)
        if chance.random() < 0.3:
            assert state_of(reader) == model
    for version in chance.sample(range(60), 30):
        assert state_of(reader, version) == states[version]
    assert set(DeltaTable(disk.root).file_uris()) == {disk.local_path(path) for path in model}
    writer.checkpoint(40)
    disk.delete(commit_path(version) for version in range(40))
    for log in (DeltaLog(disk), reader):
        assert [state_of(log, version) for version in range(40, 60)] == states[40:]
        assert log.snapshot().txns == {"writer": 59}
