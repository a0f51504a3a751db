"""The statements of the systems that lakekit stands in for run as they stand."""

import pytest

from lakekit import LogStoreError

SPARK_TABLE = """CREATE TABLE db.log_table (
    id int,
    name string,
    ts timestamp,
    primary key (id)
) using arctic
tblproperties (
"log-store.enabled" = "true",
"log-store.topic"="topic_log_test",
"log-store.address"="localhost:9092"
);"""

FLINK_TABLE = """-- First use the use catalog command to switch to the arctic catalog.
CREATE TABLE db.log_table (
    id int,
    name string,
    ts timestamp,
    primary key (id) not enforced
) WITH (
    'log-store.enabled' = 'true',
    'log-store.topic'='topic_log_test',
    'log-store.address'='localhost:9092');"""

FLINK_GUARANTEE = """create table catalog.db.arctic (
    id int, name string, primary key (id) not enforced
) WITH (
    'log-store.enabled' = 'true',
    'log-store.topic'='topic_log_test',
    'log-store.address'='localhost:9092',
    'log-store.consistency-guarantee.enabled'='true'
);"""

INSERT = """INSERT INTO db.log_table /*+ OPTIONS('arctic.emit.mode'='log') */
SELECT id, name, ts from sourceTable;"""

READ = """select * from arctic.db.arctic
/*+ OPTIONS('arctic.read.mode'='log','log-store.consistency-guarantee.enabled'='true') */ ;"""


@pytest.fixture(scope="module", autouse=True)
def db(lake, database):
    lake.create_database("db")
    yield
    lake.drop_database("db", cascade=True)


@pytest.mark.parametrize("statement", [SPARK_TABLE, FLINK_TABLE])
def test_create_table(lake, run, statement):
    run(statement)
    table = lake.table("db.log_table")
    assert table.primary_key == ("id",)
    assert table.properties["log-store.topic"] == "topic_log_test"
    assert table.options.log_store_enabled
    run("DROP TABLE db.log_table")


def test_names_with_a_catalog(lake, run):
    run("USE CATALOG arctic")
    run(FLINK_GUARANTEE)
    assert lake.table("db.arctic").options.log_store_consistency_guarantee_enabled
    run("INSERT INTO catalog.db.arctic /*+ OPTIONS('emit.mode'='file') */ VALUES (1, 'a')")
    assert run(READ.replace("='log'", "='file'")) == [(1, "a")]
    run("ALTER TABLE db.arctic SET TBLPROPERTIES ('log-store.address' = 'embedded')")
    run(
        INSERT.replace("db.log_table", "catalog.db.arctic").replace(
            "SELECT id, name, ts from sourceTable", "VALUES (2, 'b')"
        )
    )
    assert sorted(run(READ)) == [(1, "a"), (2, "b")]
    assert run(READ.replace("='log'", "='file'")) == [(1, "a")]


def test_insert_into_the_log(run):
    run(SPARK_TABLE)
    run("CREATE OR REPLACE TEMP VIEW sourceTable AS SELECT 1 AS id, 'n' AS name, current_timestamp() AS ts")
    with pytest.raises(LogStoreError, match="localhost:9092 cannot be reached"):
        run(INSERT)
    run("ALTER TABLE db.log_table SET TBLPROPERTIES ('log-store.address' = 'embedded')")
    run(INSERT)
    assert run("SELECT id, name FROM db.log_table") == []
    assert run("SELECT _change_kind, id, name FROM db.log_table$log") == [("+I", 1, "n")]
    run(INSERT.replace("='log'", "='file'"))
    assert run("SELECT id, name FROM db.log_table") == [(1, "n")]


def test_range_of_keys_in_a_partition(run):
    run(
        "CREATE TABLE orders (dt STRING, order_id BIGINT, PRIMARY KEY (dt, order_id)) USING arctic PARTITIONED BY (dt)"
    )
    run("INSERT INTO orders SELECT '2022-01-01', id FROM range(95, 110)")
    query = "SELECT * FROM orders WHERE dt = '2022-01-01' AND order_id >= 100 AND order_id <= 200;"
    assert len(run(query)) == 10
