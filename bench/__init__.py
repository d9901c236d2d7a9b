"""How fast the service answers."""
