import pytest

from lakekit.errors import UnsupportedTableError
from lakekit.storage.actions import Protocol
from lakekit.storage.protocol import check_readable, check_writable

OURS = ("appendOnly", "invariants", "changeDataFeed", "generatedColumns", "checkConstraints", "timestampNtz")
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(
    ("protocol", "configuration"),
    [
        (Protocol(1, 2), {}),
        (Protocol(1, 4), {}),
        (Protocol(2, 5), {}),
        (Protocol(2, 5), {"delta.columnMapping.mode": "none"}),
        (Protocol(3, 7, ("deletionVectors", "v2Checkpoint"), ("deletionVectors", "v2Checkpoint", *OURS)), {}),
        (Protocol(3, 7, ("variantType",), ("variantType",)), {}),
    ],
)
def test_tables_that_can_be_read_and_written(protocol, configuration):
    check_readable(protocol, configuration, "t")
    check_writable(protocol, configuration, "t")


@pytest.mark.parametrize(
    ("protocol", "configuration", "named"),
    [
        (Protocol(4, 7), {}, "reader version 4"),
        (Protocol(2, 5), MAPPED, "columnMapping"),
        (Protocol(3, 7, ("columnMapping",), ("columnMapping",)), {}, "columnMapping"),
        (Protocol(3, 7, ("typeWidening", "madeUp"), ("typeWidening", "madeUp")), {}, "madeUp, typeWidening"),
    ],
)
def test_what_a_reader_must_know_is_named(protocol, configuration, named):
    for check in (check_readable, check_writable):
        with pytest.raises(UnsupportedTableError, match=f"table shop.t: .*{named}"):
            check(protocol, configuration, "shop.t")


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        (Protocol(1, 8), "writer version 8"),
        (Protocol(1, 6), "identityColumns"),
        (Protocol(1, 7, None, ("rowTracking", "appendOnly")), "rowTracking"),
        (Protocol(3, 7, (), ("inCommitTimestamp",)), "inCommitTimestamp"),
        (Protocol(3, 7, (), ("icebergCompatV2", "clustering")), "clustering, icebergCompatV2"),
    ],
)
def test_what_only_a_writer_must_know(protocol, named):
    check_readable(protocol, {}, "t")
    with pytest.raises(UnsupportedTableError, match=named):
        check_writable(protocol, {}, "t")
