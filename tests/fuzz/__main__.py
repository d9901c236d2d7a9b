"""`python -m tests.fuzz [INPUTS]`: so many odd inputs over all readers; exits with 1 where one did harm."""

import sys
import time
import traceback
import warnings
from collections import Counter
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.guard import bound_memory, bounded_time
from tests.fuzz.targets import TARGETS, Target, refuses, warm

INPUTS: Final = 100_000


def main(inputs: int) -> int:
    """Try every reader; answers how many failed."""
    warm()
    # A number that is not finite is a fault also where no answer shows it.
    warnings.simplefilter("error", RuntimeWarning)
    bound_memory()
    failed = 0
    whole = sum(target.share for target in TARGETS)
    print(f"{'reader':14}{'inputs':>9}{'refused':>9}{'answered':>9}{'slowest s':>11}{'together s':>12}")
    for target in TARGETS:
        failed += not _tried(target, round(inputs * target.share / whole))
    return failed


def _tried(target: Target, inputs: int) -> bool:
    seen: Counter[bool] = Counter()
    slowest_s = 0.0

    @settings(
        max_examples=inputs,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
    )
    @given(target.inputs())
    def every(given_: Any) -> None:
        nonlocal slowest_s
        before_s = time.process_time()
        with bounded_time():
            seen[refuses(target, given_)] += 1
        slowest_s = max(slowest_s, time.process_time() - before_s)

    started_s = time.monotonic()
    error: BaseException | None = None
    try:
        every()
    except Exception as one:
        error = one
    print(
        f"{target.name:14}{seen.total():9}{seen[True]:9}{seen[False]:9}{slowest_s:11.2f}"
        f"{time.monotonic() - started_s:12.0f}",
        flush=True,
    )
    if error is not None:
        traceback.print_exception(error, limit=-6, chain=False)
    return error is None


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if sys.argv[1:] else INPUTS)))
