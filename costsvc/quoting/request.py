"""What a user may ask of a quote: names, bounds and meaning of every parameter, said once.

The service, the command line and the batch calls all read their input through `parse_request`.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)

from costsvc.db.entries import Market
from costsvc.errors import UnknownParameter
from costsvc.ingest.entry import Strict
from costsvc.ingest.faults import invalid_request, nearest_parameters
from costsvc.ingest.traffic import MAX_CONTEXT_TOKENS, Pause, Rate, Share, Tokens, TrafficProfile

__all__ = [
    "MAX_CONTEXT_TOKENS",
    "MAX_GPUS",
    "PARAMETERS",
    "QuoteRequest",
    "Share",
    "Text",
    "Tokens",
    "TrafficProfile",
    "Width",
    "parse_request",
]

MAX_GPUS = 4096

Text = Annotated[str, Field(min_length=1, max_length=200)]
Width = Annotated[int, Field(ge=1, le=MAX_GPUS)]
CacheSize = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
# What a profile says in place of these.
_SHAPE = ("ctx", "output", "prefix_tokens", "prefix_share", "turns", "think_s", "hit_rate")
_BY_ID, _IN_FULL = "{id}", "{profile}"  # braces keep their names out of what users read
Profile = Annotated[
    Annotated[Text, Tag(_BY_ID)] | Annotated[TrafficProfile, Tag(_IN_FULL)],
    Discriminator(lambda given: _BY_ID if isinstance(given, str) else _IN_FULL),
]


class QuoteRequest(Strict):
    """One quote, as asked. Absent parameters are chosen by the use case and echoed in the answer."""

    model: Text = Field(description="Model id or alias (Hugging Face id, common spelling).")
    gpu: Text = Field(description="GPU id or alias; `h100` is the H100 SXM 80GB.")
    ctx: Tokens | None = Field(
        None,
        description="Context per request, prompt plus output. Required unless a profile is given. [token]",
    )
    output: Tokens | None = Field(
        None, description="Output tokens; absent: 512, or a quarter of ctx if that is less. [token]"
    )
    gpus: Width | None = Field(None, description="GPUs of one replica; absent: the cheapest feasible number.")
    tp: Width | None = Field(None, description="Tensor parallelism.")
    pp: Width | None = Field(None, description="Pipeline parallelism.")
    ep: Width | None = Field(None, description="Expert parallelism.")
    dp: Width | None = Field(None, description="Attention data-parallelism.")
    weights: Text | None = Field(None, description="Weight dtype; absent: as released.")
    kv: Text | None = Field(None, description="KV-cache dtype; absent: 16-bit.")
    stack: Text | None = Field(None, description="Serving stack; absent: generic.")
    mode: Literal["colocated", "disaggregated"] = Field(
        "colocated", description="One pool, or a prefill pool and a decode pool."
    )
    allocation: Literal["paged", "contiguous"] = Field("paged", description="How KV memory is reserved.")
    kv_cache: bool = Field(
        True, description="off: every step recomputes the whole prefix (a counterfactual)."
    )
    speculation: Literal["off", "draft-model", "mtp", "ngram"] = Field(
        "off", description="What proposes tokens that a step verifies: a smaller model, MTP layers, the text."
    )
    draft_model: Text | None = Field(None, description="Model that drafts, where speculation=draft-model.")
    draft_tokens: Annotated[int, Field(ge=1, le=32)] | None = Field(
        None, description="Tokens proposed at once; absent: an assumption. [token]"
    )
    acceptance_rate: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None,
        description="Share of proposed tokens accepted, each after those before it; absent: an assumption. [1]",
    )
    profile: Profile | None = Field(
        None,
        description="Traffic in place of ctx and output: an id of /profiles, or (POST only) in full.",
    )
    prefix_tokens: int | None = Field(
        None, ge=0, le=MAX_CONTEXT_TOKENS, description="Shared system prompt. [token]"
    )
    prefix_share: Share | None = Field(
        None, description="Share of requests with the system prompt; absent: 1. [1]"
    )
    turns: float | None = Field(
        None, ge=1, le=10_000, allow_inf_nan=False, description="Requests in a conversation; absent: 1."
    )
    think_s: Pause | None = Field(None, description="Pause between turns; absent: an assumption. [s]")
    hit_rate: float | None = Field(
        None,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="Share of input tokens found in the prefix cache; absent: 0. [1]",
    )
    retention_s: float | None = Field(
        None,
        gt=0,
        le=365 * 86_400,
        allow_inf_nan=False,
        description="Longest that a prefix is kept unused; absent: as long as there is room. [s]",
    )
    dram_gb_per_gpu: CacheSize = Field(
        0.0, description="Host memory that keeps prefixes which leave the GPU, per GPU. [GB]"
    )
    nvme_gb_per_gpu: CacheSize = Field(0.0, description="Local drives that keep prefixes, per GPU. [GB]")
    object_gb_per_gpu: CacheSize = Field(0.0, description="Remote store that keeps prefixes, per GPU. [GB]")
    rps: Rate | None = Field(None, description="Offered requests per second; absent: saturated. [1/s]")
    ttft_ms: float | None = Field(
        None, gt=0, le=1e9, allow_inf_nan=False, description="Objective for the time to first token. [ms]"
    )
    tpot_ms: float | None = Field(
        None, gt=0, le=1e9, allow_inf_nan=False, description="Objective for the time per output token. [ms]"
    )
    slo: Literal["interactive", "strict", "batch"] = Field(
        "interactive",
        description="interactive: TPOT <= 50 ms; strict: TPOT <= 25 ms and TTFT <= 1 s; batch: none.",
    )
    price_usd_per_gpu_hour: Decimal | None = Field(
        None,
        ge=Decimal("1e-10"),
        le=Decimal(1_000_000),
        allow_inf_nan=False,
        description="Your own GPU price, in place of the catalog's. [USD/h]",
    )
    provider: Text | None = Field(None, description="Price of this provider; absent: the reference price.")
    market: Market = Field("on-demand", description="Market of the GPU price.")
    region: Text | None = Field(None, description="Region of the offers.")
    utilization: float | None = Field(
        None,
        ge=1e-6,
        le=1,
        allow_inf_nan=False,
        description="Share of the saturated rate that is sold (headroom where rps is given). [1]",
    )
    margin: float = Field(
        0.0, ge=0, le=100, allow_inf_nan=False, description="Added on cost: 0.2 is 20 %. [1]"
    )
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{3}$", to_upper=True)] = Field(
        "USD",
        examples=["EUR"],
        description="ISO code of the currency that money is shown in beside USD, in either case.",
    )
    fx_rate: Decimal | None = Field(
        None,
        ge=Decimal("1e-9"),
        le=Decimal(1_000_000_000),
        allow_inf_nan=False,
        description="Units of currency per USD; absent: the catalog's reference rate on the day.",
    )
    as_of: date | None = Field(None, description="Day whose prices are used; absent: today (UTC).")
    revision: int | None = Field(None, ge=1, description="Catalog revision; absent: the newest.")
    private_revision: int | None = Field(
        None,
        ge=1,
        description="Revision of your own negotiated prices (their owner's key); absent: the newest.",
    )
    attribution: Literal["marginal", "step", "pools"] = Field("marginal", description="Who pays for what.")
    trace: bool = Field(False, description="Show every intermediate with formula, inputs and source.")

    @model_validator(mode="after")
    def parameters_agree(self) -> Self:
        """Contradictions between parameters, each in one sentence."""
        for complaint in self._contradictions():
            raise ValueError(complaint)
        return self

    def _contradictions(self) -> Iterator[str]:
        yield from self._of_lengths()
        yield from self._of_prefixes()
        yield from self._of_money()
        yield from self._of_cache()
        yield from self._of_speculation()
        yield from self._of_tiers()

    def _of_lengths(self) -> Iterator[str]:
        if self.ctx is None and self.profile is None:
            yield "ctx is missing: give the context per request in tokens, such as ctx=8192"
        if self.profile is not None and (shaped := [n for n in _SHAPE if getattr(self, n) is not None]):
            yield f"profile already says what {', '.join(shaped)} would; give one or the other"
        if self.ctx is not None and self.output is not None and self.output >= self.ctx:
            yield (
                f"output is {self.output} but ctx, prompt plus output, is {self.ctx}; "
                "raise ctx or lower output"
            )
        if self.ctx == 1:
            yield "ctx is 1: a request needs at least one prompt and one output token; give ctx of 2 or more"

    def _of_prefixes(self) -> Iterator[str]:
        if self.hit_rate is not None and (self.prefix_tokens is not None or self.turns is not None):
            yield "hit_rate is given and also what it would follow from (prefix_tokens, turns); give either"
        if self.prefix_share is not None and self.prefix_tokens is None:
            yield "prefix_share needs prefix_tokens: how long is the shared prompt?"
        if self.think_s is not None and self.turns is None:
            yield "think_s needs turns: the pause is between the turns of a conversation"

    def _of_money(self) -> Iterator[str]:
        if self.currency == "USD" and self.fx_rate is not None:
            yield "fx_rate is given but currency is USD; name the currency"
        if self.price_usd_per_gpu_hour is not None and (self.provider is not None or self.region is not None):
            yield (
                "price_usd_per_gpu_hour replaces the catalog's price, so provider and region mean nothing; "
                "give one or the other"
            )
        if self.attribution == "pools" and self.mode != "disaggregated":
            yield "attribution=pools needs mode=disaggregated: one pool has no separate bills"

    def _of_cache(self) -> Iterator[str]:
        if not self.kv_cache and (self.hit_rate or self.prefix_tokens or self.turns):
            yield "kv_cache=off keeps nothing, so no prefix can be found in it; drop the prefix parameters"

    def _of_speculation(self) -> Iterator[str]:
        if self.speculation == "draft-model" and self.draft_model is None:
            yield "draft_model is missing: speculation=draft-model needs the smaller model that proposes tokens"
        if self.speculation != "draft-model" and self.draft_model is not None:
            yield f"draft_model needs speculation=draft-model, but speculation is {self.speculation}"
        if self.speculation == "off" and (self.draft_tokens or self.acceptance_rate) is not None:
            yield (
                "speculation is off, so draft_tokens and acceptance_rate mean nothing; say what proposes tokens: "
                "draft-model, mtp or ngram"
            )
        if self.speculation != "off" and not self.kv_cache:
            yield "speculation needs the cache: with kv_cache=off each step recomputes the whole prefix"

    def _of_tiers(self) -> Iterator[str]:
        comes_again = self.profile or self.prefix_tokens or self.turns
        if self.retention_s is not None and not comes_again:
            yield "retention_s is given but no prefix comes again; give a profile, prefix_tokens or turns"
        if (self.dram_gb_per_gpu or self.nvme_gb_per_gpu or self.object_gb_per_gpu) and not comes_again:
            yield "a tier is asked for but no prefix comes again; give a profile, prefix_tokens or turns"


PARAMETERS: tuple[str, ...] = tuple(QuoteRequest.model_fields)


def parse_request(given: Mapping[str, Any]) -> QuoteRequest:
    """Read a request from texts or JSON values.

    Parameters
    ----------
    given : mapping
        Parameter names to values; texts are converted, `on`/`off` included.

    Raises
    ------
    UnknownParameter
        A name that is not in `PARAMETERS`.
    InvalidRequest
        A value out of bounds or a contradiction; `details["errors"]` lists each field.
    """
    for name in given:
        if name not in PARAMETERS:
            raise UnknownParameter(name, nearest_parameters(name, PARAMETERS), PARAMETERS)
    try:
        return QuoteRequest.model_validate(dict(given))
    except ValidationError as error:
        raise invalid_request(error, QuoteRequest) from error
