"""Units and all conversions between them.  A conversion is exact or raises an error.

Time is in integer nanoseconds, memory and files in 4 KiB pages, disks in 512-byte sectors, and rates in bytes
per second.  KiB, MiB and GiB are powers of two; kB, MB and GB are powers of ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

NS: Final = 1
US: Final = 1_000
MS: Final = 1_000_000
S: Final = 1_000_000_000
KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
SECTOR_BYTES: Final = 512
PAGE_BYTES: Final = 4096
PAGE_SECTORS: Final = PAGE_BYTES // SECTOR_BYTES

_TIME: Final = {"ns": NS, "us": US, "ms": MS, "s": S, "min": 60 * S}
_SIZE: Final = {
    "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": GIB << 10,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_RATE: Final = {f"{unit}/s": size for unit, size in _SIZE.items()}
SCALES: Final[dict[str, dict[str, int]]] = {"time": _TIME, "size": _SIZE, "rate": _RATE}
EXAMPLES: Final = {"time": '"5 ms"', "size": '"4 KiB"', "rate": '"500 MB/s"'}
_QUANTITY: Final = re.compile(
    r"\s*([+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,2})?)\s*([A-Za-z/]*)\s*"
)


def parse(text: str, kind: str) -> int:
    """Return *text*, such as ``"16 GiB"``, in the base unit of *kind*: ``time`` ns, ``size`` B, ``rate`` B/s.

    *text* has a number, perhaps with an exponent (``1e3``), and a unit of this kind in `SCALES`.

    >>> parse("16 GiB", "size"), parse("1.5 ms", "time")
    (17179869184, 1500000)

    Raises:
        ValueError: the text has no number, an unknown or ambiguous unit, a negative amount, or a fraction of
            the base unit.  The message names a correct form.
    """
    scale = SCALES[kind]
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity; write a number and a unit, such as {EXAMPLES[kind]}")
    number, unit = match.groups()
    if unit in ("k", "m", "g", "K", "M", "G") and kind == "size":
        letter = unit.upper()
        decimal = "k" if letter == "K" else letter
        raise ValueError(
            f'{text!r} is ambiguous; write "{number} {letter}iB" (powers of two)'
            f' or "{number} {decimal}B" (powers of ten)'
        )
    if unit not in scale:
        message = f"{unit!r} is not a unit of {kind}" if unit else f"{text!r} has no unit"
        raise ValueError(f"{message}; use one of {', '.join(scale)}, such as {EXAMPLES[kind]}")
    amount = Fraction(number) * scale[unit]
    if amount < 0:
        raise ValueError(f"{text!r} is negative; give a {kind} of zero or more")
    if amount.denominator != 1:
        raise ValueError(f"{text!r} is a fraction; give a whole number of {_base(kind)}")
    return int(amount)


def quantity(text: str) -> int | str:
    """Return a *text* with a number and a unit of `SCALES` as a number of ns, B or B/s.

    Any other text is returned unchanged, also a number without a unit.

    >>> quantity("125 MB/s"), quantity("5 us"), quantity("ssd"), quantity("5")
    (125000000, 5000, 'ssd', '5')

    Raises:
        ValueError: the amount is negative, or has a fraction of the base unit.
    """
    match = _QUANTITY.fullmatch(text)
    kind = next((kind for kind, scale in SCALES.items() if match and match[2] in scale), None)
    return text if kind is None else parse(text, kind)


def quantities(texts: Iterable[str]) -> dict[str, int | str]:
    """Return the `quantity` of each of *texts*, by the text, for the files of the catalogue.

    >>> quantities(["5 us", "ssd"])
    {'5 us': 5000, 'ssd': 'ssd'}

    Raises:
        ValueError: an amount is negative, or has a fraction of the base unit.
    """
    return {text: quantity(text) for text in texts}


def pages(size_bytes: int) -> int:
    """Return *size_bytes* in pages.

    >>> pages(1 << 20)
    256

    Raises:
        ValueError: *size_bytes* is not a whole number of pages.
    """
    return _divide(size_bytes, PAGE_BYTES, "4 KiB pages")


def sectors(size_bytes: int) -> int:
    """Return *size_bytes* in 512-byte sectors.

    >>> sectors(4096)
    8

    Raises:
        ValueError: *size_bytes* is not a whole number of sectors.
    """
    return _divide(size_bytes, SECTOR_BYTES, "512 B sectors")


def _divide(size_bytes: int, unit_bytes: int, name: str) -> int:
    count, rest = divmod(size_bytes, unit_bytes)
    if rest:
        raise ValueError(f"{size_bytes} B is not a whole number of {name}")
    return count


def _base(kind: str) -> str:
    return {"time": "ns", "size": "B", "rate": "B/s"}[kind]
