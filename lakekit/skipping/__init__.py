"""What a query need not read: predicates, statistics of files, row groups and pages, and a report of it."""
