"""The service over HTTP: parse, ask a use case, render. No physics, no SQL."""
