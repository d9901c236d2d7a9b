"""A traffic profile from a recorded trace."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from costsvc.engine.moments import sample_moments
from costsvc.engine.sessions import recorded_sharing
from costsvc.engine.trace import Requests
from costsvc.errors import InvalidRequest
from costsvc.ingest.faults import invalid_request
from costsvc.ingest.traces import TracePart
from costsvc.ingest.traffic import Quantile, TrafficProfile

_SHARES: Final = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_SHORTEST_PAUSE_S: Final = 1e-3
_DIGITS: Final = 4


def fitted_profile(parts: Iterable[TracePart], *, block_tokens: int) -> TrafficProfile:
    """Rate, lengths by quantile and their correlation; with blocks, a shared prompt and conversations.

    The conversations are those that explain what an unbounded cache hits. An hour of trace says nothing of a
    day's shape, so the rate is the same all day.

    Raises
    ------
    InvalidRequest
        The trace has fewer than two requests, or they take no time, or what it says is beyond a profile's bounds.
    """
    kept = list(parts)
    times, inputs, outputs = (
        np.concatenate([getattr(part, name) for part in kept]) if kept else np.zeros(0)
        for name in ("timestamp_s", "input_tokens", "output_tokens")
    )
    if len(times) < 2 or times[-1] <= times[0]:
        raise InvalidRequest("A profile needs at least two requests at different times. Send a longer trace.")
    # A price is of requests that answer something.
    outputs = np.maximum(outputs, 1)
    moments = sample_moments(inputs.astype(np.float64), outputs.astype(np.float64), np.ones(len(times)))
    profile: dict[str, Any] = {
        "input_quantiles": _quantiles(inputs),
        "output_quantiles": _quantiles(outputs),
        "length_correlation": _rounded(moments.length_correlation),
        "rps": _rounded((len(times) - 1) / float(times[-1] - times[0])),
    }
    # Means of quantiles are not quite those of the lengths.
    mean = _checked(profile).moments()
    longest = max(int(np.max(inputs + outputs)), ceil(mean.input_tokens + mean.output_tokens))
    profile["max_context_tokens"] = longest
    requests = _joined(kept)
    if requests is not None:
        sharing = recorded_sharing(requests, times, moments.output_tokens, block_tokens=block_tokens)
        own = int(mean.input_tokens) - 1
        if system := min(int(sharing.system_tokens), own):
            profile["system_prompt_tokens"] = system
            profile["system_prompt_share"] = _rounded(sharing.system_share)
        if sharing.calls > 1.0:
            profile["turns"] = _rounded(sharing.calls)
            profile["think_s"] = _rounded(max(sharing.pause_s, _SHORTEST_PAUSE_S))
    return _checked(profile)


def _checked(profile: Mapping[str, Any]) -> TrafficProfile:
    try:
        return TrafficProfile.model_validate(profile)
    except ValidationError as error:
        said = invalid_request(error, TrafficProfile).message
        raise InvalidRequest(
            f"This trace makes no profile: {said} Are its times and lengths right?"
        ) from error


def _quantiles(lengths: np.ndarray) -> list[Quantile]:
    """Lengths at fixed shares, the shortest and the longest included."""
    tokens = np.maximum(np.round(np.quantile(lengths, _SHARES)), 1).astype(int)
    return [Quantile(share=share, tokens=int(one)) for share, one in zip(_SHARES, tokens, strict=True)]


def _joined(parts: list[TracePart]) -> Requests | None:
    blocks = [part.requests for part in parts if part.requests is not None]
    if not blocks:
        return None
    return Requests(
        np.concatenate([one.blocks for one in blocks]),
        np.concatenate([one.counts for one in blocks]),
        np.concatenate([one.input_tokens for one in blocks]),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
