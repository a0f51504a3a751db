"""Files and the Delta log: everything lakekit knows about a table without Spark."""
