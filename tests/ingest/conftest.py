"""A small catalog in a folder, to be spoiled one line at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.files import read_catalog

FILES = {
    "sources.yaml": """\
sources:
  - {id: sheet, title: A sheet, kind: vendor, accessed: 2026-11-29}
  - {id: list, title: A price list, kind: third-party, licence: MIT}
""",
    "dtypes.yaml": """\
dtypes:
  - {id: bf16, aliases: [bfloat16], value_bytes: 2, arithmetic: [bf16, fp16], source: sheet}
  - {id: fp8, value_bytes: 1, arithmetic: [fp8, bf16, fp16], source: sheet}
""",
    "weight_plans.yaml": """\
weight_plans:
  - {id: bf16, attention: bf16, ffn: bf16, experts: bf16, embedding: bf16, other: bf16, source: sheet}
""",
    "stacks.yaml": """\
stacks:
  - id: vllm
    name: vLLM
    memory_rule: of-total
    reserves_full_length: false
    window_rule: window
    without_kernel:
      - {dtype: fp8, generation: hopper, reason: an example}
    source: sheet
""",
    "providers.yaml": """\
providers:
  - {id: aws, name: AWS, spellings: [AWS EC2]}
""",
    "owned.yaml": """\
priced_with: {power_usd_per_kwh: power, pue: pue, load_share_of_power: load}
facility:
  - {name: power, value: "0.10", unit: USD/kWh, day: 2026-01-01, source: list}
  - {name: pue, value: "1.25", unit: "1", day: 2026-01-01, source: list}
  - {name: load, value: "0.8", unit: "1", day: 2026-01-01, source: list}
purchases:
  - {gpu: h100, capex_usd: "30000", day: 2026-06-01, precision: month, source: list}
""",
    "calibration/owned.yaml": """\
source: {title: Judgements, kind: estimate}
judgements:
  - name: owned_amortisation_years
    value: 5
    unit: "1"
    kind: estimate
    dated: 2026-11-29
    reason: an example
  - name: owned_server_cost_ratio
    value: 1.46
    unit: "1"
    kind: estimate
    dated: 2026-11-29
    reason: an example
  - name: owned_hosting_usd_per_kw_month
    value: 73
    unit: "1"
    kind: estimate
    dated: 2026-11-29
    reason: an example
""",
    "calibration/examples.yaml": """\
source: {title: Measurements, kind: derived}
judgements:
  - name: gemm_mfu_share
    value: 0.7
    unit: "1"
    kind: measured
    dated: 2026-11-29
    scope: {gpu: h100, stack: vllm, dtype: fp8}
    points: 12
    scatter_ratio: 0.1
""",
    "models/tiny.yaml": """\
id: tiny
name: Tiny
family: tiny
hf_id: acme/Tiny-1B
aliases: [tiny-instruct]
released_weights: bf16
max_context_tokens: 4096
hidden_size: 64
vocab_size: 100
tied_embeddings: false
layers: 2*full+mlp
attention:
  full: {kind: full, query_heads: 4, kv_heads: 2, head_dim: 16}
ffn:
  mlp: {kind: dense, intermediate_size: 128}
published_parameters: 86720
sources:
  - covers: [hf_id, released_weights, max_context_tokens, hidden_size, vocab_size, tied_embeddings, layers]
    title: Tiny configuration
    kind: vendor
  - covers: [attention, ffn, published_parameters]
    title: Tiny paper
    kind: vendor
    quoted: 87 K parameters
""",
    "gpus/h100.yaml": """\
id: h100
name: H100 SXM
vendor: nvidia
generation: hopper
aliases: [H100 SXM5]
memory_gib: 80
driver_memory_mib: 81559
memory_bandwidth_gb_per_s: 3350
dense_bf16_tflops: 989.4
dense_fp8_tflops: 1978.9
scale_up_link: NVLink4
scale_up_gb_per_s_per_direction: 450
scale_up_domain_gpus: 8
pcie_generation: 5
pcie_lanes: 16
pcie_gb_per_s_per_direction: 64
power_w: 700
spec_check: verified
fields_not_confirmed: {single-source: [power_w]}
sources:
  - covers:
      [generation, memory_gib, driver_memory_mib, memory_bandwidth_gb_per_s, dense_bf16_tflops,
       dense_fp8_tflops, scale_up_link, scale_up_gb_per_s_per_direction, scale_up_domain_gpus,
       pcie_generation, pcie_lanes, pcie_gb_per_s_per_direction, power_w]
    title: H100 datasheet
    kind: vendor
confirmations:
  - {fields: [dense_bf16_tflops], title: Another table, quoted: "989"}
""",
    "prices/aws.yaml": """\
provider: aws
checked: 2026-11-29
offers:
  - gpu: h100
    instance_type: p5.48xlarge
    gpus_per_instance: 8
    region: us-east-1
    market: on-demand
    basis: whole-instance
    prices:
      - {first_day: 2026-01-01, usd_per_instance_hour: "98.32", precision: month, source: list}
      - {first_day: 2026-06-15, usd_per_instance_hour: "55.04", source: list}
""",
    "api_prices/aws.yaml": """\
provider: aws
observations:
  - source: list
    observed: 2026-11-01
    precision: month
    models:
      - {id: bedrock/tiny, model: tiny, input_usd_per_mtok: "0.10", output_usd_per_mtok: "0.30"}
      - id: bedrock/odd
        input_usd_per_mtok: "5.0"
        output_usd_per_mtok: "0.15"
        excluded_reason: surely wrong
""",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A catalog without a mistake."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def refusal(root: Path) -> Callable[[str, str, str], str]:
    """What is said of the catalog once `old` is `new` in one of its files."""

    def said(name: str, old: str, new: str) -> str:
        path = root / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(InvalidCatalogFile) as caught:
            read_catalog(root)
        return caught.value.message

    return said
