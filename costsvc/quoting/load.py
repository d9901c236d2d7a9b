"""What a request says of its traffic: lengths, sharing, rates, and the tiers that keep prefixes."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from costsvc.db.snapshot import Catalog
from costsvc.engine.prefix import Tier
from costsvc.engine.sharing import Documents, SharingProfile, reuse_of
from costsvc.engine.specs import Traffic
from costsvc.engine.units import GIGA
from costsvc.errors import InvalidRequest
from costsvc.ingest.traffic import TrafficProfile
from costsvc.quoting.request import QuoteRequest

LOWER_TIERS = ("dram", "nvme", "object")
_KEPT_PROFILES = 1024
_ROUNDING_TOKENS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The traffic of a quote. `hourly_rps` is empty where the rate is the same all day. [1/s]"""

    traffic: Traffic
    sharing: SharingProfile | None
    profile_id: str | None = None
    rps: float | None = None
    hourly_rps: tuple[float, ...] = ()
    tiers: tuple[Tier, ...] = ()


def load_of(catalog: Catalog, request: QuoteRequest, assumed: Callable[[str], float]) -> Load:
    """The traffic of a request, from its profile or from its own parameters.

    Raises
    ------
    NotInCatalog
        There is no such profile.
    InvalidRequest
        The parts of the prompt that come again are longer than the prompt.
    """
    if request.profile is None:
        traffic, sharing = _of_parameters(request, assumed)
        sharing = _retained(sharing, request)
        return Load(traffic=traffic, sharing=sharing, rps=request.rps, tiers=_tiers(request, assumed))
    profile, profile_id = profile_of(catalog, request.profile)
    traffic, sharing = of_profile(profile)
    sharing = _retained(sharing, request)
    rps = request.rps or profile.rps
    shape = profile.hourly_shape or []
    hourly = tuple(rps * part * len(shape) / sum(shape) for part in shape) if rps else ()
    return Load(
        traffic=traffic,
        sharing=sharing,
        profile_id=profile_id,
        rps=rps,
        hourly_rps=hourly,
        tiers=_tiers(request, assumed) if sharing else (),
    )


def profile_of(catalog: Catalog, given: str | TrafficProfile) -> tuple[TrafficProfile, str | None]:
    """A profile that is named or given in full, and its id where it is named.

    Raises
    ------
    NotInCatalog
        There is no such profile.
    """
    if not isinstance(given, str):
        return given, None
    entry = catalog.profile(given)
    return read_profile(entry.traffic), entry.id


@lru_cache(maxsize=_KEPT_PROFILES)
def read_profile(traffic: str) -> TrafficProfile:
    """A stored profile. Profiles number tens and never change, so each is read once."""
    return TrafficProfile.model_validate(json.loads(traffic))


def of_profile(profile: TrafficProfile) -> tuple[Traffic, SharingProfile | None]:
    """Moments of the lengths, and where prompts were seen before."""
    lengths = profile.moments()
    prompt, output = lengths.input_tokens, lengths.output_tokens
    traffic = Traffic(
        uncached_input_tokens=prompt,
        cached_input_tokens=0.0,
        output_tokens=output,
        context_limit_tokens=profile.max_context_tokens or prompt + output,
        input_cv=lengths.input_cv,
        output_cv=lengths.output_cv,
        length_correlation=lengths.length_correlation,
    )
    if not profile.shared_tokens and profile.calls == 1:
        return traffic, None
    documents = profile.documents
    sharing = SharingProfile(
        system_tokens=profile.system_prompt_tokens,
        system_share=profile.system_prompt_share,
        turns=profile.turns,
        think_s=profile.think_s,
        more_prompts=tuple((float(one.tokens), one.share) for one in profile.system_prompts),
        documents=None
        if documents is None
        else Documents(
            count=documents.count,
            tokens=documents.tokens,
            share=documents.share,
            zipf_exponent=documents.zipf_exponent,
        ),
        steps=profile.agent.steps if profile.agent else 1.0,
        step_pause_s=profile.agent.pause_s if profile.agent else profile.think_s,
    )
    reuse_of(sharing, prompt, output)
    return traffic, sharing


def _of_parameters(
    request: QuoteRequest, assumed: Callable[[str], float]
) -> tuple[Traffic, SharingProfile | None]:
    context = request.ctx or 0
    output = request.output or default_output_tokens(context, assumed)
    prompt = context - output
    sharing = _sharing(request, prompt, output, assumed)
    cached = (request.hit_rate or 0.0) * prompt
    if cached > max(prompt - 1, 0) + _ROUNDING_TOKENS:
        # Rounded down, so that what is advised is not refused again.
        most = math.floor(max(prompt - 1, 0) / max(prompt, 1) * 1e6) / 1e6
        raise InvalidRequest(
            f"hit_rate is {request.hit_rate:g} of {prompt} input tokens, which leaves {prompt - cached:.3g} to "
            f"compute. A request computes at least one: raise ctx or lower hit_rate to {most:.6g}.",
            field="hit_rate",
        )
    return Traffic(
        uncached_input_tokens=prompt - cached,
        cached_input_tokens=cached,
        output_tokens=output,
        context_limit_tokens=context,
    ), sharing


def _retained(sharing: SharingProfile | None, request: QuoteRequest) -> SharingProfile | None:
    """Sharing that forgets what was not used for as long as the request says."""
    if sharing is None or request.retention_s is None:
        return sharing
    return replace(sharing, retention_s=request.retention_s)


def default_output_tokens(context_tokens: int, assumed: Callable[[str], float]) -> int:
    """Output of a request that states none: the usual one, of a short context a share. [token]"""
    usual = assumed("default_output_tokens")
    largest = assumed("default_output_share") * context_tokens
    return max(int(min(usual, largest)), 1)


def _sharing(
    request: QuoteRequest, prompt_tokens: float, output_tokens: float, assumed: Callable[[str], float]
) -> SharingProfile | None:
    if not request.prefix_tokens and request.turns is None:
        return None
    if request.prefix_tokens and request.prefix_tokens >= prompt_tokens:
        raise InvalidRequest(
            f"prefix_tokens is {request.prefix_tokens} but the whole prompt, ctx - output, has "
            f"{prompt_tokens:g} tokens. A request needs at least one token of its own: raise ctx or lower "
            f"prefix_tokens.",
            field="prefix_tokens",
        )
    sharing = SharingProfile(
        system_tokens=float(request.prefix_tokens or 0),
        system_share=1.0 if request.prefix_share is None else request.prefix_share,
        turns=request.turns or 1.0,
        think_s=request.think_s or assumed("think_s"),
    )
    reuse_of(sharing, prompt_tokens, output_tokens)
    return sharing


def _tiers(request: QuoteRequest, assumed: Callable[[str], float]) -> tuple[Tier, ...]:
    """The tiers that are asked for, fastest first."""
    asked = ((name, getattr(request, f"{name}_gb_per_gpu")) for name in LOWER_TIERS)
    return tuple(
        Tier(name=name, capacity_bytes=size_gb * GIGA, bytes_per_s=assumed(f"{name}_bytes_per_s"))
        for name, size_gb in asked
        if size_gb
    )
