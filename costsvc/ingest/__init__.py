"""Catalog files to records: the schemas of the files, and the one place where printed units become SI."""
