"""Token buckets: a caller may make a burst of requests at once, and then as many as drip in."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple, Protocol

# A network hands a household a whole IPv6 prefix of this length, so an address within it costs nothing.
_IPV6_PREFIX_BITS: Final = 64
_IPV6_BITS: Final = 128
_MOST_CALLERS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Policy:
    """How much one caller may ask.

    Parameters
    ----------
    burst : int
        Requests at once. [request]
    per_s : float
        Requests that drip in afterwards. [request/s]
    """

    burst: int
    per_s: float


class Decision(NamedTuple):
    """Whether a request is answered, how many more would be at once, and when this one would be. [s]"""

    is_allowed: bool
    left: int
    wait_s: float


class Buckets(Protocol):
    """Where callers are counted."""

    async def take(self, caller: str, cost: int) -> Decision:
        """Count a request that weighs `cost` ordinary ones."""


class SharedBuckets(Buckets, Protocol):
    """Where callers of several processes are counted together, by a server that may be away."""

    @property
    def is_reached(self) -> bool:
        """Whether the server answered when it was last asked."""

    async def start(self) -> None:
        """Find out whether the server answers."""

    async def stop(self) -> None:
        """End connections."""


class ProcessBuckets:
    """Buckets of this process alone. Of more callers than `most_callers` the longest unseen is forgotten."""

    def __init__(
        self,
        policy: Policy,
        *,
        clock: Callable[[], float] = time.monotonic,
        most_callers: int = _MOST_CALLERS,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._most_callers = most_callers
        # Tokens, and the moment when they were counted.
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def take(self, caller: str, cost: int) -> Decision:
        """Count a request that weighs `cost` ordinary ones."""
        policy, now_s = self._policy, self._clock()
        had, at_s = self._tokens.pop(caller, (float(policy.burst), now_s))
        tokens = min(policy.burst, had + (now_s - at_s) * policy.per_s)
        is_allowed = tokens >= cost
        left = tokens - cost if is_allowed else tokens
        self._tokens[caller] = (left, now_s)
        if len(self._tokens) > self._most_callers:
            self._tokens.popitem(last=False)
        return Decision(is_allowed, int(left), 0.0 if is_allowed else (cost - tokens) / policy.per_s)


@lru_cache(maxsize=_MOST_CALLERS)
def caller_at(host: str) -> str:
    """The caller behind an address: of IPv6 its network.

    Examples
    --------
    >>> caller_at("192.0.2.7")
    'address 192.0.2.7'
    >>> caller_at("2001:db8:1:2:3:4:5:6")
    'address 2001:db8:1:2::/64'
    """
    try:
        address = ip_address(host)
    except ValueError:
        return f"address {host}"
    if not isinstance(address, IPv6Address):
        return f"address {address}"
    if address.ipv4_mapped is not None:
        return f"address {address.ipv4_mapped}"
    network = IPv6Address(int(address) >> _IPV6_BITS - _IPV6_PREFIX_BITS << _IPV6_BITS - _IPV6_PREFIX_BITS)
    return f"address {network}/{_IPV6_PREFIX_BITS}"
