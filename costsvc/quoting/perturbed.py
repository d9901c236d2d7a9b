"""A calibration with some of its values moved, all moves side by side: one evaluation gives all slopes."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from costsvc.db.entries import Judgement
from costsvc.db.judgements import NOT_PLAIN
from costsvc.engine.specs import Calibration, MatrixEfficiency


def with_steps(calibration: Calibration, places: Sequence[Sequence[Judgement]], step: float) -> Calibration:
    """A calibration whose values are columns: as they are, then each place moved by a factor exp(step).

    Parameters
    ----------
    places : sequence of sequences of Judgement
        What moves together in each row: judgements that the calibration was resolved from.

    Returns
    -------
    Calibration
        Moved values are arrays of (1 + places, 1); all others stay numbers.
    """
    factors: dict[tuple[str, str], NDArray[np.float64]] = {}
    for row, judgements in enumerate(places, start=1):
        for judgement in judgements:
            place = judgement.name, dict(judgement.scope).get("dtype", "")
            factors.setdefault(place, np.ones((1 + len(places), 1)))[row] = np.exp(step)

    def moved(name: str, value: float, dtype: str = "") -> float:
        exact = factors.get((name, dtype)) if dtype else None
        if exact is None and not dtype:
            exact = next((array for (of, _), array in factors.items() if of == name), None)
        return value if exact is None else cast("float", value * exact)

    def matrices(kind: str, table: Mapping[str, MatrixEfficiency]) -> dict[str, MatrixEfficiency]:
        return {
            dtype: MatrixEfficiency(
                mfu_share=moved(f"{kind}_mfu_share", one.mfu_share, dtype),
                mbu_share=moved(f"{kind}_mbu_share", one.mbu_share, dtype),
                half_tokens=moved(f"{kind}_half_tokens", one.half_tokens, dtype),
            )
            for dtype, one in table.items()
        }

    plain = {
        field.name: moved(field.name, getattr(calibration, field.name))
        for field in fields(Calibration)
        if field.name not in NOT_PLAIN
    }
    attention = calibration.attention_decode_mbu_share
    return replace(
        calibration,
        gemm=matrices("gemm", calibration.gemm),
        moe=matrices("moe", calibration.moe),
        attention_decode_mbu_share={
            dtype: moved("attention_decode_mbu_share", share, dtype) for dtype, share in attention.items()
        },
        **cast("dict[str, Any]", plain),
    )
