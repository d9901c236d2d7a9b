"""What stands before every handler: whose request it is, and whether it is answered now.

A handler says by its `opt` what it is: `OPEN` needs no key where keys are required, `UNCOUNTED` is what watches the
service, `HEAVY` computes for long or takes a large body, so only so many are inside at a time.
"""

from typing import Final

OPEN: Final = {"open": True}
UNCOUNTED: Final = {"uncounted": True}
HEAVY: Final = {"heavy": True}
