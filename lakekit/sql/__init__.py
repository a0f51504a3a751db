"""SQL: Spark SQL plus keyed tables, system tables, time travel and maintenance calls."""
