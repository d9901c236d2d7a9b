"""The catalog in a database, and in memory by revision."""
