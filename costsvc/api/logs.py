"""Log lines for people, or one JSON object each for a collector, without keys and passwords."""

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from costsvc.api.redaction import redacted
from costsvc.api.request_id import request_id_of
from costsvc.api.watch.watch import CURRENT

if TYPE_CHECKING:
    from litestar.types import Scope

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_ACCESS: Final = logging.getLogger("costsvc.access")
_FACTS: Final = "facts"


class TextLines(logging.Formatter):
    """Lines for people."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback below it."""
        return redacted(super().format(record))


class JsonLines(logging.Formatter):
    """One object per record, the traceback and the id of the request inside it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        if (scope := CURRENT.get()) is not None:
            line["request_id"] = request_id_of(scope)
        if record.exc_info:
            line["traceback"] = redacted(self.formatException(record.exc_info))
        facts: Mapping[str, object] = getattr(record, _FACTS, {})
        return json.dumps({**line, **facts})


def configure(level: str, form: Literal["text", "json"]) -> None:
    """Send log records to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def log_access(scope: "Scope", status: int, taken_s: float) -> None:
    """A line per request: who asked for what, and how it went. The query stands in it without its key."""
    query = scope["query_string"].decode("latin-1")
    target = redacted(f"{scope['path']}?{query}" if query else scope["path"])
    client, key = scope.get("client"), scope["state"].get("key")
    facts = {
        "request_id": request_id_of(scope),
        "method": scope.get("method", ""),
        "target": target,
        "status": status,
        "taken_ms": round(taken_s * 1e3, 3),
        "address": client[0] if client else None,
        "key": None if key is None else key.id,
        "problem": scope["state"].get("problem"),
    }
    said = f"{facts['method']} {target} {status} in {facts['taken_ms']} ms, request {facts['request_id']}"
    _ACCESS.info("%s", said, extra={_FACTS: facts})
