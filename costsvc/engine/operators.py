"""Rooflines of one operator on one accelerator: matrix products, experts, attention, communication.

An operator is first reduced to what it costs per unit of work (`Roof`, `Line`), which many batches then share.
Everything is elementwise. Peaks are facts (`GpuSpec`), shares of them judgements (`Calibration`).
"""

from dataclasses import dataclass

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.formulas import rows_s, units_s
from costsvc.engine.specs import Calibration, DtypeSpec, GpuSpec, MatrixEfficiency

SIXTEEN_BIT_RATES = ("bf16", "fp16")
SIXTEEN_BIT_BYTES = 2


@dataclass(frozen=True, slots=True)
class Roof:
    """An operator on rows of tokens under its two roofs: see `formulas.rows_s`.

    `row_s` is what a row computes, `memory_s` what is read however many rows there are. [s], [s], [token]
    """

    row_s: Floats
    memory_s: Floats
    half_rows: Floats = 0.0

    @property
    def numbers(self) -> tuple[Floats, Floats, Floats]:
        """As `search.Network` has them."""
        return self.row_s, self.memory_s, self.half_rows

    def seconds(self, rows: Floats) -> Floats:
        """Time for `rows`. [s]"""
        found: Floats = rows_s(rows, self.row_s, self.memory_s, self.half_rows)
        return found

    def times(self, factor: Floats) -> "Roof":
        """The operator `factor` times over."""
        return Roof(self.row_s * factor, self.memory_s * factor, self.half_rows)


@dataclass(frozen=True, slots=True)
class Line:
    """An operator whose time rises straight, see `formulas.units_s`: once, and per unit of work. [s]"""

    once_s: Floats
    unit_s: Floats

    def seconds(self, units: Floats) -> Floats:
        """Time for `units`. [s]"""
        found: Floats = units_s(units, self.once_s, self.unit_s)
        return found

    def times(self, factor: Floats) -> "Line":
        """The operator `factor` times over."""
        return Line(self.once_s * factor, self.unit_s * factor)

    def __add__(self, other: "Line") -> "Line":
        return Line(self.once_s + other.once_s, self.unit_s + other.unit_s)


def roof_s(compute_s: Floats, memory_s: Floats) -> Floats:
    r"""Time under two roofs, :math:`\sqrt{t_c^2 + t_m^2}`: never below either, 1.41 times both where they meet.

    References
    ----------
    .. [1] Williams, Waterman and Patterson, "Roofline," CACM 52(4), 2009, for the two roofs; the smooth corner
       is fitted to the measured matrix products of `docs/accuracy.md`.

    Examples
    --------
    >>> float(roof_s(3.0, 4.0))
    5.0
    """
    return np.sqrt(compute_s**2 + memory_s**2)


def matrix_efficiency(
    calibration: Calibration, gpu: GpuSpec, dtype: DtypeSpec, experts: bool
) -> MatrixEfficiency:
    """Shares for a weight dtype; without matrix units for it the weights are widened on the fly.

    A weight-only product reads few bytes but computes at the 16-bit peak, at a share of its efficiency. It fills
    the matrix units with fewer rows, as it waits for fewer bytes of weights: half of the rows at half the width.
    """
    table = calibration.moe if experts else calibration.gemm
    if not is_weight_only(gpu, dtype):
        return table[dtype.id]
    wide = next(table[rate] for rate in SIXTEEN_BIT_RATES if rate in table)
    return MatrixEfficiency(
        mfu_share=wide.mfu_share * calibration.weight_only_mfu_share,
        mbu_share=table[dtype.id].mbu_share,
        half_tokens=wide.half_tokens * dtype.value_bytes / SIXTEEN_BIT_BYTES,
    )


def is_weight_only(gpu: GpuSpec, dtype: DtypeSpec) -> bool:
    """Whether the card stores the dtype but computes it in 16 bit."""
    return dtype.value_bytes < SIXTEEN_BIT_BYTES and gpu.arithmetic_of(dtype) in SIXTEEN_BIT_RATES


def peak_flops_per_s(gpu: GpuSpec, dtype: DtypeSpec) -> float:
    """Dense peak that serves a weight dtype. [FLOP/s]"""
    rate = gpu.arithmetic_of(dtype)
    if rate is None:
        raise KeyError(dtype.id)
    return gpu.dense_flops_per_s[rate]


def sixteen_bit_flops_per_s(gpu: GpuSpec) -> float:
    """Dense 16-bit peak, which attention computes at. [FLOP/s]"""
    return max(gpu.dense_flops_per_s.get(rate, 0.0) for rate in SIXTEEN_BIT_RATES)


def gemm(parameters: Floats, dtype: DtypeSpec, gpu: GpuSpec, efficiency: MatrixEfficiency) -> Roof:
    r"""Product of rows of tokens with weights.

    .. math:: t_c = \frac{2 m N}{F \, \eta_c} \frac{m + m_{1/2}}{m}, \quad t_m = \frac{N b}{\beta \, \eta_m}

    Parameters
    ----------
    parameters : float or array
        Weights :math:`N` on this accelerator. [parameters]
    """
    return Roof(
        row_s=2.0 * parameters / (peak_flops_per_s(gpu, dtype) * efficiency.mfu_share),
        memory_s=parameters * dtype.value_bytes / (gpu.memory_bytes_per_s * efficiency.mbu_share),
        half_rows=efficiency.half_tokens,
    )


def attention_decode(
    read_bytes: Floats, flops: Floats, gpu: GpuSpec, calibration: Calibration, kv: DtypeSpec
) -> Line:
    """Decode attention of one layer by sequences: the cache is read once; MLA and MQA may meet the compute roof.

    Parameters
    ----------
    read_bytes, flops : float or array
        Of one sequence. [B], [FLOP]
    """
    memory_s = read_bytes / (gpu.memory_bytes_per_s * calibration.attention_decode_mbu_share[kv.id])
    compute_s = flops / (sixteen_bit_flops_per_s(gpu) * calibration.attention_decode_mfu_share)
    floor_s = np.where(read_bytes > 0, calibration.attention_decode_floor_s, 0.0)
    return Line(once_s=floor_s, unit_s=roof_s(compute_s, memory_s))


def attention_prefill(
    flops: Floats, read_bytes: Floats, visible_tokens: Floats, gpu: GpuSpec, calibration: Calibration
) -> Roof:
    """Prefill attention of one layer by prompt tokens; its efficiency rises with the visible context.

    Parameters
    ----------
    flops : float or array
        Of one token. [FLOP]
    read_bytes : float or array
        Cache that is read once. [B]
    """
    half = calibration.attention_prefill_half_tokens
    share = calibration.attention_prefill_mfu_share * (visible_tokens + 1.0) / (visible_tokens + 1.0 + half)
    return Roof(flops / (sixteen_bit_flops_per_s(gpu) * share), read_bytes / gpu.memory_bytes_per_s)


def scan_prefill(flops: Floats, gpu: GpuSpec, calibration: Calibration) -> Roof:
    """Recurrent mixer by prompt tokens: chunked scans are matrix products of fixed size, long from the start."""
    return Roof(flops / (sixteen_bit_flops_per_s(gpu) * calibration.attention_prefill_mfu_share), 0.0)


def all_reduce(ranks: Floats, gpu: GpuSpec, calibration: Calibration) -> Line:
    r"""Ring or switch all-reduce by bytes, :math:`\alpha + 2 \frac{n-1}{n} \frac{s}{\beta}`; free on one rank.

    References
    ----------
    .. [1] Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.
    """
    latency_s, bytes_per_s = link(ranks, gpu, calibration)
    return Line(np.where(ranks > 1, latency_s, 0.0), 2.0 * (ranks - 1.0) / ranks / bytes_per_s)


def all_to_all(ranks: Floats, experts_per_token: int, gpu: GpuSpec, calibration: Calibration) -> Line:
    r"""Sending tokens to the ranks of their experts, or bringing the results back, by bytes; free on one rank.

    A token crosses once to each other destination that holds one of its k experts, not once for each expert:
    of :math:`n` destinations :math:`(n - 1)(1 - (1 - 1/n)^k)` on average. Destinations are ranks; where the
    network is crossed they are nodes, in which a token is passed on over the faster link. Sorting tokens by
    expert and meeting all ranks takes `exchange_latency_s` whatever their number.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V3," 2024, arXiv:2412.19437, section 3.2.2 (cross-node all-to-all).
    """
    latency_s, bytes_per_s = link(ranks, gpu, calibration)
    node = _node_gpus(gpu, calibration)
    destinations = np.where(np.asarray(ranks) > node, np.asarray(ranks) / node, ranks)
    crossings = (destinations - 1.0) * (1.0 - (1.0 - 1.0 / destinations) ** experts_per_token)
    once_s = latency_s + calibration.exchange_latency_s
    return Line(np.where(ranks > 1, once_s, 0.0), crossings / bytes_per_s)


def link(ranks: Floats, gpu: GpuSpec, calibration: Calibration) -> tuple[Floats, Floats]:
    """Latency and rate between `ranks` accelerators: scale-up link, else PCIe in a node, else the network.

    Returns
    -------
    tuple
        [s], [B/s]
    """
    ranks = np.asarray(ranks)
    beyond_link = ranks > gpu.link_domain_gpus
    far = ranks > _node_gpus(gpu, calibration)
    scale_up = gpu.link_bytes_per_s * calibration.link_efficiency_share
    pcie = gpu.pcie_bytes_per_s * calibration.pcie_efficiency_share
    over_pcie = beyond_link | (gpu.link_domain_gpus <= 1)
    near_s = np.where(over_pcie, calibration.pcie_latency_s, calibration.link_latency_s)
    latency_s = np.where(far, calibration.network_latency_s, near_s)
    return latency_s, np.where(far, calibration.network_bytes_per_s, np.where(over_pcie, pcie, scale_up))


def _node_gpus(gpu: GpuSpec, calibration: Calibration) -> float:
    """Accelerators that reach one another without the network. [GPUs]"""
    return max(float(gpu.link_domain_gpus), calibration.node_gpus)
