"""The audit workbook: a quote as live formulas, written by running the engine's own formulas on cells."""
