"""A small catalog with one of everything that is hard to store: the tests of this folder build on it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal

from costsvc.db.entries import (
    ApiPrice,
    CatalogContent,
    DatedPrice,
    DtypeEntry,
    FactSource,
    FxRate,
    GpuEntry,
    Judgement,
    Market,
    ModelEntry,
    Offer,
    ProfileEntry,
    Source,
    StackEntry,
    WeightPlanEntry,
)
from costsvc.db.repository import CatalogRepository, StoreResult
from costsvc.engine.attention import (
    ChunkedAttention,
    FullAttention,
    LatentAttention,
    SlidingAttention,
    SparseIndexer,
)
from costsvc.engine.specs import DenseFfn, DtypeSpec, GpuSpec, LayerGroup, ModelSpec, MoeFfn

SHEET = "sheet"
LIST = "price-list"
DAY = date(2026, 11, 29)

FULL = FullAttention(query_heads=64, kv_heads=8, head_dim=128)
MIXERS = (
    FULL,
    SlidingAttention(query_heads=16, kv_heads=8, head_dim=128, window_tokens=4096),
    ChunkedAttention(query_heads=40, kv_heads=8, head_dim=128, chunk_tokens=8192),
    LatentAttention(
        query_heads=128,
        latent_dim=512,
        rope_dim=64,
        nope_dim=128,
        value_dim=128,
        query_latent_dim=1536,
        indexer=SparseIndexer(selected_tokens=2048, heads=64, head_dim=128),
    ),
    None,
)


def model(id: str, *, aliases: tuple[str, ...] = (), hf_id: str | None = None) -> ModelEntry:
    groups = tuple(
        LayerGroup(
            attention=mixer,
            ffn=MoeFfn(experts=256, experts_per_token=8, intermediate_size=2048)
            if n % 2
            else DenseFfn(intermediate_size=28_672),
        )
        for n, mixer in enumerate(MIXERS)
    )
    return ModelEntry(
        id=id,
        name=f"The {id} model",
        family="example",
        spec=ModelSpec(
            id=id,
            hidden_size=8192,
            vocab_size=128_256,
            tied_embeddings=False,
            max_context_tokens=131_072,
            groups=groups,
            pattern=(0, 1, 2, 3, 4, 0),
            mtp_parameters=13_500_000_000,
        ),
        released_weights="bf16",
        aliases=aliases,
        fact_sources=(
            FactSource(field="hidden_size", source_id=SHEET),
            FactSource(field="vocab_size", source_id=LIST),
        ),
        hf_id=hf_id,
        licence="apache-2.0",
        released=date(2024, 4, 18),
        published_parameters=1_026_408_232_448,
        parameter_difference_reason="the tower is not modelled",
        notes="Größe · 大",
    )


def gpu(id: str, *, aliases: tuple[str, ...] = ()) -> GpuEntry:
    return GpuEntry(
        id=id,
        name=f"NVIDIA {id.upper()}",
        vendor="nvidia",
        spec=GpuSpec(
            id=id,
            generation="hopper",
            # A whole number where a float is meant, as files may write it.
            memory_bytes=80_000_000_000,
            usable_memory_bytes=79.65 * 2**30,
            memory_bytes_per_s=3350e9,
            # Written as 1.4e+16 by Python and without an exponent by some databases.
            dense_flops_per_s={"bf16": 989.4e12, "fp4": 1.4e16},
            link_bytes_per_s=450e9,
            link_domain_gpus=8,
            pcie_bytes_per_s=63.015e9,
            power_w=700.0,
        ),
        aliases=aliases,
        fact_sources=(FactSource(field="memory_gb", source_id=SHEET),),
        spec_check="single-source",
        fields_not_confirmed=("int8", "pcie"),
    )


def offer(
    provider: str,
    prices: Iterable[tuple[date, str | None]],
    *,
    gpu_id: str = "h100-sxm",
    market: Market = "on-demand",
    region: str | None = None,
    excluded_reason: str | None = None,
    suffix: str = "",
) -> Offer:
    return Offer(
        id=f"{provider}-{gpu_id}-{market}-{region}{suffix}".lower().replace(" ", "-"),
        provider=provider,
        gpu_id=gpu_id,
        market=market,
        prices=tuple(
            DatedPrice(first_day=day, usd_per_gpu_hour=None if usd is None else Decimal(usd), source_id=LIST)
            for day, usd in sorted(prices, key=lambda price: price[0])
        ),
        gpus_per_instance=8,
        region=region,
        excluded_reason=excluded_reason,
    )


def with_offers(content: CatalogContent, *offers: Offer) -> CatalogContent:
    """The catalog with these offers in place of its own, ordered as a loaded catalog is."""
    return replace(content, offers=tuple(sorted(offers, key=lambda offer: offer.id)))


CONTENT = CatalogContent(
    sources=(
        Source(id=LIST, title="Price list", kind="vendor", url="https://example.com/prices", accessed=DAY),
        Source(id=SHEET, title="Data sheet", kind="third-party", locator="table 1"),
    ),
    models=(
        model("llama-3-70b", aliases=("llama3-70b",), hf_id="meta-llama/Meta-Llama-3-70B"),
        model("llama-3.1-8b"),
        model("qwen3-8b", hf_id="Qwen/Qwen3-8B"),
    ),
    gpus=(gpu("h100-nvl", aliases=("hopper",)), gpu("h100-sxm", aliases=("h100", "hopper"))),
    offers=(
        offer("AWS EC2", [(date(2025, 1, 1), "12.29"), (date(2026, 6, 15), "6.880000001")]),
        offer("Example Cloud", [(date(2026, 1, 1), "3.00"), (date(2026, 11, 1), None)]),
    ),
    api_prices=(
        # Two sources of one day may differ in nothing that tells observations apart.
        ApiPrice(
            provider="Example API",
            provider_model_id="org/llama-3-70b",
            source_id=LIST,
            observed=date(2026, 7, 25),
            model_id="llama-3-70b",
            cached_input_usd_per_mtok=Decimal("0.05"),
        ),
        ApiPrice(
            provider="Example API",
            provider_model_id="org/llama-3-70b",
            source_id=LIST,
            observed=date(2026, 7, 25),
            model_id="llama-3-70b",
            input_usd_per_mtok=Decimal("0.1"),
            output_usd_per_mtok=Decimal("0.300000000000000000001"),
            context_limit_tokens=10_000_000_000,
        ),
    ),
    judgements=(
        Judgement(
            name="decode_mbu",
            value=0.1 + 0.2,
            unit="1",
            kind="measured",
            dated=DAY,
            source_id=SHEET,
            scope=(("gpu", "h100-sxm"), ("stack", "vllm")),
            points=41,
            scatter_ratio=1.3,
        ),
        Judgement(name="utilization", value=0.8, unit="1", kind="estimate", dated=DAY, source_id=SHEET),
    ),
    dtypes=(
        DtypeEntry(spec=DtypeSpec("bf16", 2.0, ("bf16", "fp16")), aliases=("bfloat16",), source_id=SHEET),
        DtypeEntry(spec=DtypeSpec("mxfp4", 0.53125, ("fp4", "bf16")), aliases=(), source_id=SHEET),
    ),
    weight_plans=(
        WeightPlanEntry(
            id="bf16", attention="bf16", ffn="bf16", experts="bf16", embedding="bf16", other="bf16"
        ),
        WeightPlanEntry(
            id="mxfp4-experts",
            attention="bf16",
            ffn="bf16",
            experts="mxfp4",
            embedding="bf16",
            other="bf16",
            aliases=("gpt-oss",),
        ),
    ),
    stacks=(
        StackEntry(
            id="vllm",
            name="vLLM",
            aliases=("v-llm",),
            memory_rule="of-total",
            reserves_full_length=False,
            window_rule="window",
            kv_beside_quantised="bf16",
            without_kernel=(("fp4", "ampere"), ("fp8", "volta")),
            source_id=SHEET,
        ),
    ),
    profiles=(
        ProfileEntry(
            id="chat",
            name="Chat",
            description="People who talk.",
            traffic='{"input_tokens":900,"output_tokens":200,"turns":4.5}',
            aliases=("assistant",),
            fact_sources=(FactSource(field="turns", source_id=SHEET),),
        ),
    ),
    fx_rates=(
        FxRate(currency="EUR", first_day=DAY, units_per_usd=Decimal("0.8951"), source_id=LIST),
        FxRate(currency="GBP", first_day=DAY, units_per_usd=Decimal("0.7463"), source_id=LIST),
    ),
)


def store(repository: CatalogRepository, content: CatalogContent) -> StoreResult:
    """Store it as a new revision."""
    return repository.store(content, author="me", note="a test")
