"""Log lines."""

import json
import logging

from costsvc.api.logs import JsonLines


def test_a_collector_gets_one_object_per_record_with_the_traceback_inside() -> None:
    try:
        raise RuntimeError("the reason")
    except RuntimeError as error:
        record = logging.LogRecord(
            "costsvc",
            logging.ERROR,
            __file__,
            1,
            "request %s failed",
            ("42",),
            (RuntimeError, error, error.__traceback__),
        )
    line = JsonLines().format(record)
    assert "\n" not in line
    shown = json.loads(line)
    assert (shown["level"], shown["logger"], shown["message"]) == ("error", "costsvc", "request 42 failed")
    assert "RuntimeError: the reason" in shown["traceback"]
