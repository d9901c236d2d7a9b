"""All that is compiled, made before the first request."""

from costsvc.engine import ray, search, tape
from costsvc.engine.compiling import settled


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    for part in (search, tape, ray):
        part.make_ready()
        settled(vars(part).values())
