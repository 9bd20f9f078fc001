"""How a device is written: as users do, MAJ:MIN, and as tracepoints do, MAJ,MIN."""

from __future__ import annotations

from wbsim.experiments.config.problems import bad


def device_of(text: str | None) -> str | None:
    """MAJ:MIN as the tracepoints write it.

    Raises:
        BadInput: it is no device.
    """
    if text is None:
        return None
    major, separator, minor = text.replace(",", ":").partition(":")
    if not (separator and major.isdigit() and minor.isdigit()):
        raise bad("--device", f"{text} is no device; write it as 7:0")
    return f"{major},{minor}"
