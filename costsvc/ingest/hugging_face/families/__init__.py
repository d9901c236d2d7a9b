"""The families that can be imported, by `model_type`.

What a description fixes is what the public model class of that type does, as in transformers 5.24 or, where the class
ships with the weights, in the released code; the imports that docs/importing-models.md counts confirm it.
"""

from collections.abc import Mapping
from typing import Final

from costsvc.ingest.hugging_face.families import dense, early, experts, hybrid, latent, windowed
from costsvc.ingest.hugging_face.family import Family

FAMILIES: Final[Mapping[str, Family]] = {
    name: family
    for module in (dense, early, experts, hybrid, latent, windowed)
    for family in module.FAMILIES
    for name in family.types
}
