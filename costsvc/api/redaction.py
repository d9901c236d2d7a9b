"""Secrets out of what is logged, traced or shown: a key has a form of its own, so it is found anywhere."""

import re
from typing import Final

_HIDDEN: Final = "[redacted]"
_SECRETS: Final = (
    # A key keeps its id, by which an operator finds and revokes it.
    (re.compile(r"(costsvc_[0-9a-f]{1,64})_[A-Za-z0-9_-]+"), rf"\1_{_HIDDEN}"),
    # Whatever was shown as a key, also where it is none of ours.
    (
        re.compile(r"((?:api_key|api%5fkey|x-api-key)(?:=|%3d|:\s*))[^&\s\"'#]+", re.IGNORECASE),
        rf"\1{_HIDDEN}",
    ),
    (re.compile(r"(bearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1{_HIDDEN}"),
    # The password of an address, such as that of a database.
    (re.compile(r"(\w+://[^\s:/@]*:)[^\s@/]+(?=@)"), rf"\1{_HIDDEN}"),
)


def redacted(text: str) -> str:
    """The text without keys and passwords.

    Examples
    --------
    >>> redacted("GET /quote?ctx=8&api_key=costsvc_0a1b_s3cret&v=1")
    'GET /quote?ctx=8&api_key=[redacted]&v=1'
    >>> redacted("No model 'costsvc_0a1b_s3cret' in the catalog.")
    "No model 'costsvc_0a1b_[redacted]' in the catalog."
    >>> redacted("postgresql://costsvc:hunter2@db/costsvc")
    'postgresql://costsvc:[redacted]@db/costsvc'
    """
    for secret, hidden in _SECRETS:
        text = secret.sub(hidden, text)
    return text
