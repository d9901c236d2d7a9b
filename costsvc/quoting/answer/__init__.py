"""The answer of a quote, section by section, as plain values: text, numbers, lists and maps."""
