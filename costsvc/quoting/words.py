"""Counts as people say them."""


def counted(count: float, what: str) -> str:
    """A number and what it counts, with an s unless there is one.

    Examples
    --------
    >>> counted(1, "GPU"), counted(1250, "request"), counted(0, "row")
    ('1 GPU', '1,250 requests', '0 rows')
    """
    number = f"{count:,.0f}"
    return f"{number} {what}" if number == "1" else f"{number} {what}s"
