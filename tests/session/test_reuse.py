"""`connect()` beside a Spark session that somebody else made; in a process of its own."""

import subprocess
import sys

SCRIPT = """
import os
import lakekit
from lakekit.session import jars, spark, versions
from pyspark.sql import SparkSession

def refused(**arguments):
    try:
        lakekit.connect(**arguments)
    except lakekit.SessionError as error:
        print("REFUSED:", error)

delta = ",".join(map(str, jars.not_in_spark(jars.resolve(versions.delta_coordinates()))))
base = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).config("spark.jars", delta)
base = base.config("spark.driver.memory", "1g").config("spark.sql.warehouse.dir", os.path.abspath("theirs"))
plain = base.getOrCreate()
refused()
plain.stop()

base = base.config("spark.sql.extensions", spark.DELTA_EXTENSION)
theirs = base.config("spark.sql.catalog.spark_catalog", spark.DELTA_CATALOG).getOrCreate()
refused(warehouse="mine")
lake = lakekit.connect()
print("same session:", lake.spark is theirs, "own warehouse:", lake.warehouse == os.path.abspath("theirs"))
lake.stop()
print("still runs:", theirs.range(3).count())
theirs.stop()

with lakekit.connect("mine", config={"spark.driver.memory": "1g"}) as lake:
    print("ours:", os.path.basename(lake.warehouse), lake.spark.range(4).count(), lake.spark.conf.get("spark.app.name"))
try:
    lake.spark
except lakekit.SessionError as error:
    print("REFUSED:", error)
"""


def test_sessions_of_others(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line]
    assert done.returncode == 0, done.stderr[-3000:]
    without_delta, other_warehouse, same, runs, ours, stopped = lines
    assert without_delta.startswith(
        "REFUSED: The active Spark session was started without Delta: it lacks spark.sql"
    )
    assert "spark.jars.packages=io.delta:delta-spark_2.13" in without_delta
    assert "has the warehouse" in other_warehouse
    assert "spark.stop()" in other_warehouse
    assert same == "same session: True own warehouse: True"
    assert runs == "still runs: 3"
    assert ours == "ours: mine 4 lakekit"
    assert "has been stopped" in stopped
