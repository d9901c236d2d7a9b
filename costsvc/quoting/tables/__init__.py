"""Answers as tables, and how tables are written: columns in a fixed order, units in their names."""
