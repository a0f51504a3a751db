"""Table options: names, values and what fits together."""

from __future__ import annotations

import pytest

from lakekit.errors import InvalidOptionError, UnsupportedTableError
from lakekit.options import OPTIONS, size_in_bytes
from lakekit.properties import (
    TableOptions,
    canonical_name,
    check_format,
    check_removal,
    normalise,
    normalise_hints,
    parse_bucket,
    visible_properties,
)

LOG = {
    "log-store.enabled": "true",
    "log-store.topic": "topic_log_test",
    "log-store.address": "localhost:9092",
}
KEYED = {
    "lake.format-version": "1",
    "lake.primary-key": '["id"]',
    "lake.bucket": "4",
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
}


@pytest.mark.parametrize("prefix", ["", "lake.", "arctic.", "mixed-format.", "LAKE."])
def test_options_are_accepted_with_every_prefix_and_stored_with_one(prefix):
    assert normalise({f"{prefix}emit.mode": "file"}) == {"lake.emit.mode": "file"}


def test_the_properties_of_the_reference_are_stored():
    assert normalise(LOG) == {f"lake.{name}": value for name, value in LOG.items()}


@pytest.mark.parametrize(
    ("given", "suggestion"),
    [
        ("log-store.enable", "log-store.enabled"),
        ("arctic.emit.mod", "emit.mode"),
        ("buckets", "bucket"),
        ("delta.enableDeletionVector", "delta.enableDeletionVectors"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(given, suggestion):
    with pytest.raises(InvalidOptionError, match=f"Did you mean '{suggestion}'"):
        normalise({given: "true"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket", "0"),
        ("bucket", "-1"),
        ("bucket", "2.5"),
        ("bucket", "40000"),
        ("bucket", ""),
        ("log-store.enabled", "yes"),
        ("log-store.type", "pulsar"),
        ("log-store.topic", "a topic"),
        ("log-store.topic", ".."),
        ("log-store.address", "localhost"),
        ("log-store.address", "user:password@host:9092"),
        ("log-store.data-format", "avro"),
        ("log-store.data-version", "v2"),
        ("log.consumer.changelog.modes", "some-kinds"),
        ("scan.startup.mode", "group-offsets"),
        ("scan.startup.specific-offsets", "0:42"),
        ("emit.mode", "log,auto"),
        ("emit.mode", "kafka"),
        ("read.mode", "both"),
        ("target-file-size", "128 apples"),
        ("target-file-size", "1kb"),
        ("target-file-size", "-5mb"),
        ("compaction.auto", "1"),
        ("compaction.num-runs", "1"),
        ("compaction.deleted-ratio", "1.5"),
        ("compaction.deleted-ratio", "nan"),
        ("compaction.size-ratio", "-1"),
        ("delta.checkpointInterval", "0"),
        ("delta.logRetentionDuration", "30"),
        ("delta.isolationLevel", "Snapshot"),
    ],
)
def test_a_bad_value_is_refused_and_the_error_says_what_is_allowed(name, value):
    with pytest.raises(InvalidOptionError, match=f"'{name}' cannot be .*Allowed: "):
        normalise({name: value})


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("bucket", 4, "4"),
        ("bucket", " 016 ", "16"),
        ("log-store.enabled", False, "false"),
        ("compaction.auto", "FALSE", "false"),
        ("target-file-size", "64 MB", "64mb"),
        ("emit.mode", "log,file", "file,log"),
        ("log-store.address", "a:1, [::1]:2", "a:1,[::1]:2"),
        ("scan.startup.specific-offsets", "partition:0,offset:42;partition:1,offset:300", None),
        ("compaction.deleted-ratio", 0.5, "0.5"),
        ("delta.appendonly", "TRUE", "true"),
        ("delta.logRetentionDuration", "interval 30 days", None),
        ("delta.dataSkippingNumIndexedCols", "-1", None),
        ("delta.isolationLevel", "serializable", "Serializable"),
    ],
)
def test_values_are_stored_in_one_form(name, value, stored):
    extra = LOG if name == "emit.mode" else {}
    result = normalise({name: value, **extra})
    assert result[canonical_name(name)] == (stored or value)


@pytest.mark.parametrize(
    "name",
    [
        "delta.feature.typeWidening",
        "delta.minWriterVersion",
        "delta.columnMapping.mode",
        "delta.constraints.c",
    ],
)
def test_delta_properties_that_change_the_protocol_are_refused(name):
    with pytest.raises(InvalidOptionError, match="readers and writers"):
        normalise({name: "name"})


@pytest.mark.parametrize(
    "name",
    [
        "properties.sasl.jaas.config",
        "log-store.properties.ssl.keystore.password",
        "arctic.log-store.access-key",
        "my.api-token",
        "delta.secret",
    ],
)
def test_secrets_are_refused_and_not_repeated(name):
    with pytest.raises(InvalidOptionError, match="is a secret") as caught:
        normalise({name: "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert "environment variable" in caught.value.hint


@pytest.mark.parametrize("name", ["primary-key", "lake.format-version"])
def test_what_lakekit_sets_itself_is_refused(name):
    with pytest.raises(InvalidOptionError, match="cannot be set"):
        normalise({name: "x"})


@pytest.mark.parametrize("missing", ["log-store.topic", "log-store.address"])
def test_a_log_needs_topic_and_address(missing):
    with pytest.raises(InvalidOptionError, match=f"'{missing}' is missing"):
        normalise({name: value for name, value in LOG.items() if name != missing})


def test_append_only_rows_do_not_go_with_the_guarantee():
    both = {"log.consumer.changelog.modes": "append-only", "log-store.consistency-guarantee.enabled": "true"}
    with pytest.raises(InvalidOptionError, match="does not go with"):
        normalise({**LOG, **both})
    with pytest.raises(InvalidOptionError, match="does not go with"):
        normalise(
            {"log-store.consistency-guarantee.enabled": True},
            {"lake.log.consumer.changelog.modes": "append-only"},
        )


@pytest.mark.parametrize("mode", ["log", "file,log"])
def test_writing_to_the_log_needs_a_log(mode):
    with pytest.raises(InvalidOptionError, match="has no log"):
        normalise({"emit.mode": mode})
    assert normalise({"emit.mode": mode, **LOG})["lake.emit.mode"] == mode


def test_the_start_by_time_needs_a_time():
    with pytest.raises(InvalidOptionError, match=r"scan\.startup\.timestamp-millis' is missing"):
        normalise({"scan.startup.mode": "timestamp"})
    with pytest.raises(InvalidOptionError, match=r"scan\.startup\.specific-offsets' is missing"):
        normalise({"scan.startup.mode": "specific-offsets"})


def test_the_same_option_under_two_names_must_agree():
    assert normalise({"emit.mode": "file", "arctic.emit.mode": "file"}) == {"lake.emit.mode": "file"}
    with pytest.raises(InvalidOptionError, match="given twice"):
        normalise({"emit.mode": "file", "arctic.emit.mode": "auto"})


@pytest.mark.parametrize("name", ["bucket", "arctic.bucket", "sequence.field"])
def test_options_fixed_at_creation_cannot_change(name):
    with pytest.raises(InvalidOptionError, match="cannot be changed"):
        normalise({name: "8"}, KEYED)
    with pytest.raises(InvalidOptionError, match="cannot be changed"):
        check_removal([name], {**KEYED, "lake.sequence.field": "ts"})


def test_setting_a_fixed_option_to_what_it_is_changes_nothing():
    assert normalise({"bucket": "4"}, KEYED) == {"lake.bucket": "4"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.enableDeletionVectors", "false"),
        ("delta.enableChangeDataFeed", "false"),
        ("delta.appendOnly", "true"),
    ],
)
def test_a_keyed_table_keeps_what_upserts_need(name, value):
    with pytest.raises(InvalidOptionError, match="with a primary key"):
        normalise({name: value}, KEYED)
    assert normalise({name: value}) == {name: value}


def test_vectors_and_change_feed_cannot_be_unset_on_a_keyed_table():
    with pytest.raises(InvalidOptionError, match="with a primary key"):
        check_removal(["delta.enableChangeDataFeed"], KEYED)
    assert check_removal(["delta.appendOnly", "emit.mode"], {**KEYED, "lake.emit.mode": "file"}) == {
        "delta.appendOnly",
        "lake.emit.mode",
    }


def test_what_others_need_cannot_be_unset():
    with pytest.raises(InvalidOptionError, match=r"log-store\.topic' is missing"):
        check_removal(["log-store.topic"], normalise(LOG))


def test_hints_are_checked_against_the_table():
    configuration = normalise(LOG)
    hints = {"arctic.read.mode": "log", "log-store.consistency-guarantee.enabled": "true"}
    assert normalise_hints(hints, configuration) == {
        "lake.read.mode": "log",
        "lake.log-store.consistency-guarantee.enabled": "true",
    }
    assert normalise_hints({"arctic.emit.mode": "log"}, configuration) == {"lake.emit.mode": "log"}
    with pytest.raises(InvalidOptionError, match="has no log"):
        normalise_hints(hints, {})
    with pytest.raises(InvalidOptionError, match="has no log"):
        normalise_hints({"emit.mode": "log"}, {})
    with pytest.raises(InvalidOptionError, match="cannot be given for one statement"):
        normalise_hints({"bucket": "4"}, configuration)
    with pytest.raises(InvalidOptionError, match="Did you mean"):
        normalise_hints({"read.mod": "log"}, configuration)


def test_options_are_typed_and_have_defaults():
    options = TableOptions.from_configuration({})
    assert options.target_file_size == 128 << 20
    assert options.compaction_auto is True
    assert (options.compaction_num_runs, options.compaction_size_amplification_percent) == (5, 200)
    assert (options.compaction_size_ratio, options.compaction_deleted_ratio) == (1, 0.3)
    assert options.bucket is None
    assert options.sequence_field is None
    assert options.log_store_enabled is False
    assert (options.emit_mode, options.read_mode, options.scan_startup_mode) == ("auto", "file", "latest")
    given = {
        "lake.bucket": "8",
        "lake.target-file-size": "1.5gb",
        "lake.scan.startup.timestamp-millis": "5",
        "own": "x",
    }
    options = TableOptions.from_configuration(given)
    assert (options.bucket, options.target_file_size, options.scan_startup_timestamp_millis) == (
        8,
        3 << 29,
        5,
    )


def test_every_default_is_a_value_that_is_allowed():
    for option in OPTIONS.values():
        assert option.default is None or option.checked(option.default) == option.default


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("1 kb", 1024), ("2MB", 2 << 20), ("0.5gb", 1 << 29)])
def test_sizes(text, size):
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("value", [True, 2.0, 0, -3, "x", None])
def test_a_bucket_count_is_a_whole_number_from_one(value):
    with pytest.raises(InvalidOptionError, match="whole number"):
        parse_bucket(value)


def test_tables_of_others_and_of_a_newer_lakekit_are_refused():
    check_format("t", {"lake.format-version": "1"})
    with pytest.raises(UnsupportedTableError, match="did not make"):
        check_format("t", {})
    with pytest.raises(UnsupportedTableError, match="Upgrade lakekit"):
        check_format("t", {"lake.format-version": "2"})


def test_users_see_what_they_set():
    configuration = {**KEYED, **normalise(LOG), "delta.checkpointInterval": "20", "someone.else": "x"}
    assert visible_properties(configuration) == {"bucket": "4", "delta.checkpointInterval": "20", **LOG}
    assert normalise(visible_properties(configuration), defaults=KEYED).items() <= configuration.items()
