"""What holds at the end of every run, whatever was asked for; a law that does not is a fault of the model."""

from __future__ import annotations


class LawBroken(AssertionError):
    """Something was lost, was there twice, or took more than there is."""


def require(holds: bool, law: str) -> None:
    """Nothing, if it *holds*.

    Raises:
        LawBroken: with the words of the *law*, and what was found.
    """
    if not holds:
        raise LawBroken(law)
