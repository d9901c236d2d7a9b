"""What a token of a large language model costs: derived from shapes, hardware and prices, never guessed."""

from importlib.metadata import version

__version__ = version("costsvc")
