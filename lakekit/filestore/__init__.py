"""The bucketed FileStore: sorted runs, deletion vectors, commits and compaction over a Delta table."""
