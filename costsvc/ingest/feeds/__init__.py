"""What others publish, to be compared with the curated files: one module a feed, none of them writes."""
