"""The pricing engine: pure functions over frozen specs. No clock, no I/O, no globals."""
