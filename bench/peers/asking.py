"""What runs in the environment of a peer: points come as JSON lines, answers leave as JSON lines.

Nothing of costsvc is imported here, and nothing newer than the language itself, for a peer has its own packages.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM_CALLS = 3
"""Of which the least counts: what else the machine does is in some."""


def answer(predict: Callable[[dict[str, Any]], float]) -> None:
    """Answer each line of standard input: the predicted TPOT, what it took warm, or why there is none. [ms], [s]"""
    said = sys.stdout
    for line in sys.stdin:
        point = json.loads(line)
        with Path(os.devnull).open("w", encoding="utf-8") as silence, contextlib.redirect_stdout(silence):
            try:
                told: dict[str, Any] = {"tpot_ms": float(predict(point)), "seconds": float("inf")}
                for _ in range(WARM_CALLS):
                    started_s = time.process_time()
                    predict(point)
                    told["seconds"] = min(told["seconds"], time.process_time() - started_s)
            except Exception as error:
                told = {"error": f"{type(error).__name__}: {error}"[:200]}
        said.write(json.dumps({"id": point["id"], **told}) + "\n")
        said.flush()
