"""Laws that hold at the end of every run of any scenario.  A broken law is a fault of the model."""

from __future__ import annotations


class LawBroken(AssertionError):
    """A law of the model is broken: something was lost, exists twice, or used more than exists."""


def require(holds: bool, law: str) -> None:
    """Check that a law *holds*.

    Raises:
        LawBroken: the law does not hold; *law* is the message, with the values that were found.
    """
    if not holds:
        raise LawBroken(law)
