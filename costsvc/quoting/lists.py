"""Several values in one parameter, separated by commas."""

from costsvc.errors import InvalidRequest


def parts_of(text: str, name: str, *, most: int) -> list[str]:
    """The parts of a list, blanks dropped and each once.

    Raises
    ------
    InvalidRequest
        There is none, or there are too many.

    Examples
    --------
    >>> parts_of("h100, h200,h100", "gpu", most=10)
    ['h100', 'h200']
    """
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise InvalidRequest(
            f"{name} is an empty list; give one or several, separated by commas.", field=name
        )
    if len(parts) > most:
        raise InvalidRequest(f"{name} lists {len(parts)} values; give at most {most}.", field=name)
    return parts
