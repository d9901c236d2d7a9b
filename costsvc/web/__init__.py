"""Pages for people: static files that draw what the calls answer. Nothing here computes a number."""
