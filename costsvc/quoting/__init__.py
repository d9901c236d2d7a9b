"""Use cases, one function each. No SQL, no HTTP, no physics."""
