"""Which judgement holds for an accelerator, a stack and a dtype: the narrowest scope that matches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from costsvc.db.entries import Judgement, StackEntry
from costsvc.engine.specs import Calibration, DtypeSpec, GpuSpec, MatrixEfficiency, WeightPlan
from costsvc.errors import InvalidCatalogFile

ADDED: Final[Mapping[str, str | tuple[float, str]]] = {
    "captured_tokens": (1.0, "token"),
    "exchange_latency_s": (0.0, "s"),
    "expert_evenness_ratio": (1e9, "1"),
    "flood_least_sequences": (0.0, "1"),
    "flood_tokens": (1e15, "token"),
    "parallel_overhead_s": (0.0, "s"),
    "pcie_latency_s": "link_latency_s",
    "prefix_match_tokens": "block_tokens",
    "prompt_gathering_share": (0.0, "1"),
    "switchless_buffer_bytes": "collective_buffer_bytes",
    "ttft_steps_ratio": (0.0, "1"),
    "ttft_wave_share": (1.0, "1"),
    "whole_prefill_tokens": (0.0, "token"),
}
"""What judgements that an older catalog lacks were before: part of another, or at a value that changes nothing.

A new version reads the old one's catalog until the next is loaded, and its revisions for ever.
"""
_ADDED_REASON = "This revision of the catalog is older than the judgement: at this value it changes nothing"

_NARROWNESS = {"gpu": 16, "stack": 8, "generation": 4, "architecture": 2, "dtype": 1}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A calibration, and the judgements that it rests on."""

    calibration: Calibration
    used: tuple[Judgement, ...]


class Judgements:
    """All judgements of a catalog, by name and scope."""

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._by_place: dict[tuple[str, str | None], list[Judgement]] = {}
        for judgement in sorted(judgements, key=_narrowness, reverse=True):
            place = judgement.name, dict(judgement.scope).get("dtype")
            self._by_place.setdefault(place, []).append(judgement)
        self._calibrations: dict[tuple[str, ...], Resolved] = {}
        self._everywhere: dict[str, Judgement] = {}
        self._found: dict[tuple[str, frozenset[tuple[str, str]]], Judgement] = {}

    def find(self, name: str, scope: Mapping[str, str]) -> Judgement:
        """The judgement of that name with the narrowest scope that holds.

        Raises
        ------
        InvalidCatalogFile
            No judgement of that name holds there: the catalog lacks a global one.
        """
        key = name, frozenset(scope.items())
        if key not in self._found:
            self._found[key] = self._narrowest(name, scope)
        return self._found[key]

    def _narrowest(self, name: str, scope: Mapping[str, str]) -> Judgement:
        places = (self._by_place.get((name, dtype), ()) for dtype in {scope.get("dtype"), None})
        first = (next((one for one in place if _holds(one, scope)), None) for place in places)
        holding = [one for one in first if one is not None]
        if not holding and name in ADDED:
            return self._before(name, scope)
        if not holding:
            raise InvalidCatalogFile("calibration", f"no judgement '{name}' holds for {dict(scope)}")
        return max(holding, key=_narrowness)

    def _before(self, name: str, scope: Mapping[str, str]) -> Judgement:
        stood = ADDED[name]
        if isinstance(stood, str):
            return replace(self.find(stood, scope), name=name)
        value, unit = stood
        return replace(
            self.find("expert_skew_ratio", scope),
            name=name,
            value=value,
            unit=unit,
            kind="estimate",
            points=None,
            scatter_ratio=None,
            reason=_ADDED_REASON,
        )

    def dtypes_of(self, name: str) -> tuple[str, ...]:
        """Storage types that a judgement of that name is made for."""
        return tuple(sorted(dtype for of, dtype in self._by_place if of == name and dtype))

    def value(self, name: str) -> float:
        """The value of a judgement that holds everywhere."""
        return self.everywhere(name).value

    def everywhere(self, name: str) -> Judgement:
        """A judgement that holds everywhere: a quote asks for some twenty."""
        found = self._everywhere.get(name)
        if found is None:
            found = self._everywhere[name] = self.find(name, {})
        return found

    def calibration(
        self, gpu: GpuSpec, stack: StackEntry, architecture: str, plan: WeightPlan, kv: DtypeSpec
    ) -> Resolved:
        """The calibration of a case. Cases number hundreds and nothing here changes, so each is kept."""
        key = (gpu.id, stack.id, architecture, plan.id, kv.id)
        if key not in self._calibrations:
            self._calibrations[key] = self._resolved(gpu, stack, architecture, plan, kv)
        return self._calibrations[key]

    def _resolved(
        self, gpu: GpuSpec, stack: StackEntry, architecture: str, plan: WeightPlan, kv: DtypeSpec
    ) -> Resolved:
        scope = {
            "gpu": gpu.id,
            "generation": gpu.generation,
            "stack": stack.id,
            "architecture": architecture,
        }
        used: dict[tuple[str, str], Judgement] = {}

        def value(name: str, dtype: str = "") -> float:
            found = self.find(name, {**scope, "dtype": dtype} if dtype else scope)
            used[name, dtype] = found
            return found.value

        def matrices(kind: str) -> Mapping[str, MatrixEfficiency]:
            return {
                dtype: MatrixEfficiency(
                    mfu_share=value(f"{kind}_mfu_share", dtype),
                    mbu_share=value(f"{kind}_mbu_share", dtype),
                    half_tokens=value(f"{kind}_half_tokens", dtype),
                )
                for dtype in _dtypes(gpu, plan)
            }

        plain = {
            name: value(name, plan.id)
            for name in (field.name for field in fields(Calibration))
            if name not in NOT_PLAIN
        }
        calibration = Calibration(
            gemm=matrices("gemm"),
            moe=matrices("moe"),
            attention_decode_mbu_share={kv.id: value("attention_decode_mbu_share", kv.id)},
            memory_rule=stack.memory_rule,
            reserves_full_length=stack.reserves_full_length,
            window_rule=stack.window_rule,
            **plain,
        )
        return Resolved(calibration, tuple(used.values()))


NOT_PLAIN = frozenset(
    {
        "gemm",
        "moe",
        "attention_decode_mbu_share",
        "memory_rule",
        "reserves_full_length",
        "window_rule",
    }
)


def _dtypes(gpu: GpuSpec, plan: WeightPlan) -> tuple[str, ...]:
    """Storage types a plan computes with, and the card's own 16-bit type, which weight-only products use."""
    wide = "bf16" if "bf16" in gpu.dense_flops_per_s else "fp16"
    stored = (plan.attention, plan.ffn, plan.experts, plan.embedding, plan.other)
    return tuple(dict.fromkeys([wide, *(dtype.id for dtype in stored)]))


def _holds(judgement: Judgement, scope: Mapping[str, str]) -> bool:
    return all(scope.get(key) == wanted for key, wanted in judgement.scope)


def _narrowness(judgement: Judgement) -> int:
    return sum(_NARROWNESS[key] for key, _ in judgement.scope)
