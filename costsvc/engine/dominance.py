"""How much weight came earlier and lies higher: weighted dominance counts of many queries at once."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]


def weight_earlier_and_higher(
    heights: Integers, weights: Integers, queries: Integers, before: Integers
) -> Integers:
    r"""For each query, the weight of points that come before a time and lie above one of the points.

    Points are numbered by time. A wavelet matrix over the times of the points in order of falling height:
    each of its :math:`\log_2 n` levels answers one bit of all queries, so time and memory are
    :math:`O((n + q) \log n)` and :math:`O(n + q)`.

    Parameters
    ----------
    heights : array
        Height of each point; no two alike.
    weights : array
        Weight of each point, 0 or more.
    queries : array
        The point that each query asks about.
    before : array
        Only points of a smaller number count for the query.

    Returns
    -------
    array
        :math:`\sum w_j` over :math:`j < \mathrm{before}_i` with :math:`h_j > h_{\mathrm{query}_i}`.

    References
    ----------
    .. [1] Claude, Navarro and Ordonez, "The wavelet matrix," Information Systems 47, 2015.

    Examples
    --------
    >>> heights, weights = np.asarray([5, 9, 7, 1]), np.asarray([1, 10, 100, 1000])
    >>> weight_earlier_and_higher(heights, weights, np.asarray([0, 3]), np.asarray([2, 3]))
    array([ 10, 111])
    """
    found = np.zeros(len(queries), dtype=np.int64)
    if not len(heights) or not len(queries):
        return found
    times = np.argsort(-heights, kind="stable")
    rank = np.empty_like(times)
    rank[times] = np.arange(len(times))
    carried = weights[times]
    # Queries keep company with the points of their node, so that reading stays nearly sequential.
    order = np.argsort(rank[queries], kind="stable")
    high, until = rank[queries[order]], before[order]
    low = np.zeros_like(high)
    for bit in reversed(range(len(times).bit_length())):
        is_late = (times >> bit & 1).astype(np.bool_)
        early = np.concatenate([[0], np.cumsum(~is_late)])
        weight = np.concatenate([[0], np.cumsum(np.where(is_late, 0, carried))])
        takes = (until >> bit & 1).astype(np.bool_)
        found[order[takes]] += weight[high[takes]] - weight[low[takes]]
        low_early, high_early = early[low], early[high]
        low = np.where(takes, early[-1] + low - low_early, low_early)
        high = np.where(takes, early[-1] + high - high_early, high_early)
        order, until, low, high = (_split(part, takes) for part in (order, until, low, high))
        times, carried = _split(times, is_late), _split(carried, is_late)
    return found


def _split(values: Integers, last: NDArray[np.bool_]) -> Integers:
    """Those not marked, then those marked, each in the order they were."""
    return np.concatenate([values[~last], values[last]])
