"""The keys in use, in memory: a request with a key that was seen before asks no database."""

import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from costsvc.db.follower import Follower
from costsvc.db.keys import ApiKey, KeyRepository
from costsvc.errors import CostsvcError

LONGEST_PAUSE_S = 1.0
_MOST_HELD = 10_000

_log = logging.getLogger(__name__)


class KeyRing:
    """Keys that were verified, each confirmed again every second: one that is revoked opens nothing after two.

    While the database is away nothing can be confirmed, and nothing can be revoked either: what is held stays
    valid until it expires.
    """

    def __init__(
        self,
        keys: KeyRepository,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        most_held: int = _MOST_HELD,
    ) -> None:
        self._keys = keys
        self._now = now
        self._most_held = most_held
        # By a hash of the key: the key itself is kept nowhere, in memory neither.
        self._held: dict[bytes, ApiKey] = {}
        self._is_lost = False
        self._follower = Follower(self.refresh, pause_s=LONGEST_PAUSE_S, name="keys")

    def known(self, text: str) -> ApiKey | None:
        """The record of a key that is held and valid, from memory alone."""
        key = self._held.get(_name(text))
        if key is None or (key.expires_at is not None and key.expires_at <= self._now()):
            return None
        return key

    def verify(self, text: str) -> ApiKey:
        """The record of a key, from the database, and held from now on.

        Raises
        ------
        NotAuthorized
            The key is unknown, has expired or was revoked.
        Unavailable
            It is not held, and the database does not answer.
        """
        key = self._keys.verify(text)
        while len(self._held) >= self._most_held:
            self._held.pop(next(iter(self._held)), None)
        self._held[_name(text)] = key
        return key

    def refresh(self) -> None:
        """Let go of every held key whose record is not what it was."""
        held = dict(self._held)
        if not held:
            return
        try:
            records = self._keys.records({key.id for key in held.values()})
        except CostsvcError:
            if not self._is_lost:
                _log.warning(
                    "Keys cannot be confirmed: the database does not answer. Those in use stay valid."
                )
            self._is_lost = True
            return
        self._is_lost = False
        for name, key in held.items():
            if records.get(key.id) != key:
                self._held.pop(name, None)

    def start(self) -> None:
        """Confirm keys in the background until `stop`."""
        self._follower.start()

    def stop(self) -> None:
        """End the background thread."""
        self._follower.stop()


def _name(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()
