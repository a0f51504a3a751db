"""The LogStore: the newest changes of a table in Kafka.

The protocol is described in `docs/log-format.md`.
"""
