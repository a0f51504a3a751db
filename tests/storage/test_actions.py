import json
import pickle

import pytest

from lakekit.storage.actions import (
    AddCdcFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Other,
    Protocol,
    RemoveFile,
    Txn,
    parse_line,
    to_line,
)

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ADD = {
    "path": "dt=a%20b/_bucket=3/part-1.parquet",
    "partitionValues": {"dt": "a b", "_bucket": "3", "x": None},
    "size": 841,
    "modificationTime": 1512909768000,
    "dataChange": True,
    "stats": '{"numRecords":10,"minValues":{"id":1.50}}',
    "tags": {"lake.level": "0", "lake.run": "r1", "lake.sort": '["id","k"]'},
    "deletionVector": VECTOR,
}
LINES = [
    {"add": ADD},
    {"add": {**ADD, "baseRowId": 5, "somethingNew": {"a": [1]}}},
    {
        "remove": {
            "path": "p",
            "deletionTimestamp": 5,
            "dataChange": False,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": 3,
            "deletionVector": VECTOR,
        }
    },
    {"remove": {"path": "p", "dataChange": True}},
    {
        "metaData": {
            "id": "a",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": "{}",
            "partitionColumns": ["p"],
            "configuration": {"k": "v"},
            "createdTime": 7,
        }
    },
    {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [],
            "writerFeatures": ["x"],
        }
    },
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {"txn": {"appId": "w", "version": 3, "lastUpdated": 9}},
    {"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {"mode": None}}},
    {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    {"fromTheFuture": {"a": 1}},
]
KINDS = [
    AddFile,
    AddFile,
    RemoveFile,
    RemoveFile,
    Metadata,
    Protocol,
    Protocol,
    Txn,
    CommitInfo,
    AddCdcFile,
    DomainMetadata,
    Other,
]


@pytest.mark.parametrize(("line", "kind"), list(zip(LINES, KINDS, strict=True)))
def test_a_line_comes_back_as_it_was(line, kind):
    action = parse_line(json.dumps(line))
    assert type(action) is kind
    assert json.loads(to_line(action)) == line
    assert pickle.loads(pickle.dumps(action)) == action


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '"add"', '{"add": 3}', '{"add": {"size": 1}}'])
def test_what_is_no_action(line):
    with pytest.raises((ValueError, TypeError, KeyError)):
        parse_line(line)


def test_what_an_add_says():
    file = AddFile.from_json(ADD)
    assert file.file_path == "dt=a b/_bucket=3/part-1.parquet"
    assert (file.bucket, file.level, file.run_id, file.sort_columns) == (3, 0, "r1", ("id", "k"))
    assert (file.num_records, file.live_records) == (10, 4)


def test_a_file_written_by_others():
    file = AddFile("file:/clone%20of/x.parquet", {}, 1, 1, data_change=True)
    assert file.file_path == "file:/clone%20of/x.parquet"
    assert (file.bucket, file.level, file.run_id, file.sort_columns) == (None, None, None, ())
    assert (file.num_records, file.live_records) == (None, None)


@pytest.mark.parametrize(
    ("vector", "unique_id"),
    [
        (DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6), "uab^-aqEH.-t@S}K{vb[*k^@4"),
        (DeletionVector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 40, 6), None),
    ],
)
def test_unique_id_of_a_vector(vector, unique_id):
    assert vector.unique_id == (unique_id or f"i{vector.path_or_inline}")


def test_with_vector_loosens_the_bounds_and_keeps_their_text():
    vector = DeletionVector("u", "x" * 20, 1, 34, 2)
    for stats in (
        '{"numRecords":10,"minValues":{"d":1.50},"tightBounds":true}',
        '{"numRecords":10,"minValues":{"d":1.50}}',
        '{"numRecords":10,"minValues":{"d":1.50},"tightBounds":false}',
    ):
        file = AddFile("p", {}, 1, 1, data_change=False, stats=stats).with_vector(vector)
        assert '"d":1.50' in file.stats
        assert not file.column_stats.tight
        assert (file.live_records, file.modification_time, file.data_change) == (8, 1, True)


def test_with_vector_needs_a_row_count():
    vector = DeletionVector("u", "x" * 20, 1, 34, 2)
    file = AddFile("p", {}, 1, 1, data_change=True)
    with pytest.raises(ValueError, match="row count"):
        file.with_vector(vector)
    assert file.with_vector(vector, num_records=5).live_records == 3


def test_remove_names_the_vector_it_removes():
    file = AddFile.from_json({**ADD, "baseRowId": 5, "clusteringProvider": "x"})
    remove = file.remove(99, data_change=False)
    fields = json.loads(to_line(remove))["remove"]
    assert fields["deletionVector"] == VECTOR
    assert (fields["deletionTimestamp"], fields["dataChange"], fields["baseRowId"]) == (99, False, 5)
    assert fields["extendedFileMetadata"] is True
    assert "clusteringProvider" not in fields
