"""How far off a price may be: the model's own error on measured points like it, multiplied through."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorBand:
    """10th and 90th percentile of predicted over measured throughput on points of one regime. [1]"""

    low_ratio: float
    high_ratio: float
    points: int

    def of(self, price: float) -> tuple[float, float]:
        """Low and high of a price: where throughput was predicted too high, the true price is higher.

        Examples
        --------
        >>> ErrorBand(low_ratio=0.8, high_ratio=1.25, points=100).of(2.0)
        (1.6, 2.5)
        """
        return price * self.low_ratio, price * self.high_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRegion:
    """Where there are measured points of an accelerator generation.

    `points` is 0 where none of this generation was measured.
    """

    points: int
    longest_context_tokens: float
    most_gpus: float


def extrapolations(
    region: MeasuredRegion,
    *,
    generation: str,
    context_tokens: float,
    gpus: int,
    cached_tokens: float,
    speculates: bool = False,
) -> tuple[str, ...]:
    """In which respects a quote lies outside the measured region; empty where it lies inside.

    Examples
    --------
    >>> inside = MeasuredRegion(points=400, longest_context_tokens=33000, most_gpus=8)
    >>> extrapolations(inside, generation="hopper", context_tokens=131072, gpus=8, cached_tokens=0)
    ('131,072 tokens of context; the longest measured on hopper has 33,000',)
    """
    if not region.points:
        return (f"no throughput was measured on {generation} accelerators",)
    reasons = []
    if context_tokens > region.longest_context_tokens:
        longest = region.longest_context_tokens
        reasons.append(
            f"{context_tokens:,.0f} tokens of context; the longest measured on {generation} has {longest:,.0f}"
        )
    if gpus > region.most_gpus:
        reasons.append(
            f"{gpus} GPUs in a replica; the most measured on {generation} is {region.most_gpus:.0f}"
        )
    if cached_tokens > 0:
        reasons.append("cached input; the bands were measured without prefix hits")
    if speculates:
        reasons.append("speculative decoding; no measured point states it")
    return tuple(reasons)
