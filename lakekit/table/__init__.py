"""One table: its writes, reads, changelog, maintenance and inspection."""
