"""Streaming ingestion: rows go to the log at once, and to the files in one commit each interval."""
