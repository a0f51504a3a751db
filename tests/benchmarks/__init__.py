"""The race: lakekit and its peers on the same rows, one process for each system."""
