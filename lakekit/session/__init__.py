"""Spark sessions: what they need (Java, jars, packages), how they start, and where storage code runs."""
