"""Bodies of requests: JSON objects of bounded size."""

from typing import Any, Final

from litestar import Request
from litestar.exceptions import HTTPException

from costsvc.quoting.given import from_json

MAX_BODY_BYTES: Final = 1_000_000
MAX_BATCH_BYTES: Final = 20_000_000


async def json_object(request: Request[Any, Any, Any], *, with_infinity: bool = False) -> dict[str, Any]:
    """The members of the body; `Infinity` is refused unless asked for."""
    sent = request.headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() != "application/json":
        said = f"Content-Type is '{sent}'" if sent else "Content-Type is missing"
        raise HTTPException(status_code=415, detail=f"{said}; send application/json.")
    return from_json(await request.body(), with_infinity=with_infinity)
