"""Where along the context something gives way: exact to one token, by sections of a monotone question."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

_SECTIONS: Final = 32

Asked = Callable[[NDArray[np.float64]], NDArray[np.bool_]]


def first_tokens(happens: Asked, low: int, high: int) -> int | None:
    """The smallest context in (low, high] at which something happens that then stays so. [token]

    Parameters
    ----------
    happens : callable
        Asked for many contexts at once. [token]
    low : int
        A context at which it does not happen. [token]

    Returns
    -------
    int or None
        None where it does not happen up to `high`.

    Examples
    --------
    >>> first_tokens(lambda tokens: tokens > 1000, 1, 100_000), first_tokens(lambda tokens: tokens > 9, 1, 9)
    (1001, None)
    """
    if high <= low or not happens(np.asarray([float(high)]))[0]:
        return None
    while high - low > 1:
        places = np.unique(np.linspace(low, high, min(_SECTIONS, high - low) + 1).astype(np.int64))[1:]
        yes = happens(places.astype(np.float64))
        found = int(np.argmax(yes))
        low, high = (int(places[found - 1]) if found else low), int(places[found])
    return high
