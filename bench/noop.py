"""The service with one more route, which only answers: behind the same door, what a quote's speed is a ratio of.

`python -m bench.noop` serves it as `costsvc serve` serves the service, by the same settings; `python -m bench.noop
bare` serves the route alone, without database, door or metrics.
"""

import sys
from typing import Any

from litestar import Litestar, Response, get

from costsvc.app import create_app
from costsvc.cli.environment import environment
from costsvc.cli.serve import prepare, run

PATH = "/noop"


@get(PATH, include_in_schema=False)
async def get_noop() -> Response[Any]:
    """Nothing, as JSON."""
    return Response(b'{"ok":true}', media_type="application/json")


def create_app_with_noop() -> Litestar:
    """The service, and the route that only answers."""
    return create_app(more=(get_noop,))


def create_bare_app() -> Litestar:
    """The route that only answers, and nothing else."""
    return Litestar([get_noop], openapi_config=None, logging_config=None)


if __name__ == "__main__":
    settings = environment()
    if sys.argv[1:] == ["bare"]:
        run(settings, app="bench.noop:create_bare_app")
    else:
        prepare(settings)
        run(settings, app="bench.noop:create_app_with_noop")
