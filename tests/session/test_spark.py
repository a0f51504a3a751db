"""Settings of the local session; nothing here starts Spark."""

from pathlib import Path

import pytest

from lakekit.errors import InvalidOptionError
from lakekit.session import spark

GIB = 1 << 30


def settings(**config):
    return spark.local_settings("/wh", Path("/tmp/session"), config)


def test_a_key_that_is_no_spark_setting_is_refused():
    with pytest.raises(InvalidOptionError, match="'warehouse' is no Spark setting"):
        spark.check_config({"warehouse": "x"})


@pytest.mark.parametrize(
    ("key", "argument"), [("spark.sql.warehouse.dir", "warehouse="), ("spark.remote", "remote=")]
)
def test_what_has_an_argument_is_refused_in_config(key, argument):
    with pytest.raises(InvalidOptionError, match=argument):
        spark.check_config({key: "x"})


def test_values_become_texts_as_spark_writes_them():
    assert spark.check_config({"spark.a": True, "spark.b": 3}) == {"spark.a": "true", "spark.b": "3"}


def test_the_users_settings_win():
    assert (
        settings(**{"spark.sql.session.timeZone": "Asia/Tokyo"})["spark.sql.session.timeZone"] == "Asia/Tokyo"
    )


def test_extensions_and_java_options_are_joined():
    merged = settings(
        **{"spark.sql.extensions": "org.example.Mine", "spark.driver.extraJavaOptions": "-Xss4m"}
    )
    assert merged["spark.sql.extensions"] == f"{spark.DELTA_EXTENSION},org.example.Mine"
    assert "log4j2.properties" in merged["spark.driver.extraJavaOptions"]
    assert merged["spark.driver.extraJavaOptions"].endswith(" -Xss4m")


def test_naming_delta_again_does_not_double_it():
    assert (
        settings(**{"spark.sql.extensions": spark.DELTA_EXTENSION})["spark.sql.extensions"]
        == spark.DELTA_EXTENSION
    )


@pytest.mark.parametrize(("total", "heap_mib"), [(2 * GIB, 1024), (10 * GIB, 4096), (256 * GIB, 16384)])
def test_the_heap_is_a_share_of_the_memory(total, heap_mib):
    assert spark.driver_memory(total) == heap_mib


def test_the_limits_of_a_container_count(tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "_CGROUP", tmp_path)
    free = spark.cores(), spark.memory()
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert (spark.cores(), spark.memory()) == free
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{GIB // 4}\n")
    assert (spark.cores(), spark.memory()) == (1, GIB // 4)


def test_this_machine_has_cores_and_memory():
    assert spark.cores() >= 1
    assert spark.memory() > GIB // 4
