"""A number with its unit, its origin and its source.

Python has a quantity as a whole number of ns, B or B/s; a configuration has it as a text with a unit.

A `Spec` is a frozen pydantic model: the configuration schema, the validated value and the provenance of each
number, in one class.  A spec computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import CoreSchema, core_schema

from wbsim.sim import units

Inputs = dict[str, Any]
"""The fields from which a spec is built, by name.  A nested spec is a table, and a value may be a `Given`."""


class Origin(StrEnum):
    """The origin of a number; only calibrated numbers were fitted."""

    CALIBRATED = "calibrated"
    MEASURED = "measured"
    SPECIFIED = "specified"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Given:
    """A value and its provenance; *low* and *high* bound the sensitivity sweep of an assumed value."""

    value: Any
    origin: Origin
    source: str
    low: Any = None
    high: Any = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stated(Given):
    """A value with an origin and a range that a user wrote; both are read and checked like the value.

    ``extra_keys`` are keys of the statement that have no meaning.
    """

    extra_keys: tuple[str, ...] = ()


class Followed(Given):
    """A value that another key decides, because the user gave none; it changes with that key."""


class ByHand(int):
    """A number without a unit that a user wrote; it is refused where a quantity is needed."""


def specified(value: Any, source: str) -> Given:
    """Return *value* with the origin "specified".

    *source* names kernel source, a standard, a datasheet or the user's configuration.
    """
    return Given(value, Origin.SPECIFIED, source)


def followed(value: Any, source: str) -> Given:
    """Return *value* as a `Followed` ("specified"): another key decides it, by the rule in *source*."""
    return Followed(value, Origin.SPECIFIED, source)


def measured(value: Any, source: str) -> Given:
    """Return a measured value; *source* cites the report or the command."""
    return Given(value, Origin.MEASURED, source)


def calibrated(value: Any, source: str, targets: tuple[str, ...]) -> Given:
    """Return a value that was fitted to *targets*, names of rows of published.csv, by a command in *source*.

    Without a command the value was set by hand, as *source* says.
    """
    return Given(value, Origin.CALIBRATED, source, targets=targets)


def assumed(value: Any, source: str, low: Any, high: Any, targets: tuple[str, ...] = ()) -> Given:
    """Return a value that is not known, with the range from *low* to *high* in which it may lie.

    The range includes its ends.  *source* gives the reason for the value.  *targets* are names of rows of
    published.csv that had been seen when the value was chosen.
    """
    return Given(value, Origin.ASSUMED, source, low, high, targets)


def bare(value: Any) -> Any:
    """Return *value* and all values in it without their provenance.

    Tables become new dicts, and tuples become lists.  A `Spec` is returned as it is.

    >>> bare({"size": specified(4096, "mkfs"), "names": ("a", "b")})
    {'size': 4096, 'names': ['a', 'b']}
    """
    if isinstance(value, Given):
        return bare(value.value)
    if isinstance(value, Mapping):
        return {key: bare(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [bare(item) for item in value]
    return value


def _parse(kind: str) -> BeforeValidator:
    def parse(value: object) -> object:
        if isinstance(value, str):
            return units.parse(value, kind)
        if isinstance(value, ByHand | bool | float):
            raise ValueError(f"{value!r} has no unit; write a text such as {units.EXAMPLES[kind]}")
        if value is not None and not isinstance(value, int):
            raise ValueError(
                f"{str(value)[:60]} is not a {kind}; write a text such as {units.EXAMPLES[kind]}"
            )
        return value

    return BeforeValidator(parse)


class BadValue(ValueError):
    """The check of a spec refuses the value at *path*, which is relative to the spec."""

    def __init__(self, message: str, *path: str) -> None:
        super().__init__(message)
        self.path = path


class Unit(NamedTuple):
    """Marks a field with the unit of its value; *optional*: a configuration may leave the unit out."""

    name: str
    optional: bool = False


def number(value: object) -> object:
    """Return *value* unchanged; specs check a number without a unit this way, before its type and range.

    Raises:
        ValueError: *value* is a flag or a text.
    """
    if isinstance(value, bool | str):
        raise ValueError(f"{value!r} is not a number; write a number without quotes")
    return value


# Upper bounds: no larger value has a meaning, and int64 must hold all values.
MOST_NS, MOST_BYTES, MOST_BYTES_PER_S, MOST = 10**18, 1 << 60, 10**16, 10**9

Ns = Annotated[int, _parse("time"), Unit("ns"), Field(ge=0, le=MOST_NS)]
"""A duration: ns in Python, text with a unit (``"5 ms"``) in a configuration."""
Interval = Annotated[int, _parse("time"), Unit("ns"), Field(gt=0, le=MOST_NS)]
"""The time between two repetitions: a duration of more than 0."""
BytesOrNone = Annotated[int, _parse("size"), Unit("B"), Field(ge=0, le=MOST_BYTES)]
"""A size that may be 0: bytes in Python, text with a unit (``"4 KiB"``) in a configuration."""
Bytes = Annotated[int, _parse("size"), Unit("B"), Field(gt=0, le=MOST_BYTES)]
"""A size of more than 0."""
BytesPerS = Annotated[int, _parse("rate"), Unit("B/s"), Field(gt=0, le=MOST_BYTES_PER_S)]
"""A rate: bytes per second in Python, text with a unit (``"500 MB/s"``) in a configuration."""
Count = Annotated[int, BeforeValidator(number), Field(ge=1, le=MOST)]
"""A whole number, one or more."""
CountOrNone = Annotated[int, BeforeValidator(number), Field(ge=0, le=MOST)]
"""A whole number that may be 0."""
Threads = Annotated[int, BeforeValidator(number), Field(ge=1, le=8192)]
"""A number of processors or threads: at least 1, and at most the largest NR_CPUS of Linux."""
Real = Annotated[float, BeforeValidator(number), Field(allow_inf_nan=False)]
"""A number that need not be whole."""
Flag = Annotated[bool, Field(strict=True)]
"""true or false; no number or text is accepted instead."""


ValueT = TypeVar("ValueT")


class Named(Mapping[str, ValueT], Generic[ValueT]):
    """Specs by name, in the order given: a frozen table of a configuration."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, ValueT]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> ValueT:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (value,) = get_args(source)
        return core_schema.no_info_after_validator_function(
            cls,
            core_schema.no_info_before_validator_function(
                _with_names,
                core_schema.dict_schema(core_schema.str_schema(), handler.generate_schema(value)),
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: {name: _dumped(item) for name, item in table.items()}
            ),
        )


def is_name(text: str) -> bool:
    """Return whether *text* is 1 to 100 printable characters, of which at least one is not blank.

    >>> is_name("sda"), is_name(" "), is_name("a" * 101)
    (True, False, False)
    """
    return 0 < len(text) <= 100 and text.isprintable() and bool(text.strip())


def _name(value: object) -> object:
    if isinstance(value, str) and not is_name(value):
        raise ValueError(f"is {value[:100]!r}; give 1 to 100 printable characters")
    return value


Name = Annotated[str, BeforeValidator(_name)]
"""A name: a text for which `is_name` is true."""


def _with_names(table: Any) -> Any:
    """Return *table*; each of its names must fit into a key, a label and a file name."""
    if not isinstance(table, Mapping):
        return table
    for name in table:
        if not isinstance(name, str) or not is_name(name) or "/" in name:
            raise BadValue(
                "is not a name; give 1 to 100 printable characters without a slash", str(name)[:100]
            )
    return dict(table)


def _dumped(item: Any) -> Any:
    return item.model_dump(mode="json") if isinstance(item, BaseModel) else item


class Number(NamedTuple):
    """A number: its *path* in the spec, its *value*, its *unit* (see `unit_of`) and its provenance."""

    path: str
    value: Any
    unit: str
    provenance: Given | None


class Spec(BaseModel):
    """The base of all specs: frozen, closed, and aware of the provenance of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _provenance: dict[str, Given] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _strip_provenance(cls, data: Any, handler: ModelWrapValidatorHandler[Spec]) -> Spec:
        if not isinstance(data, Mapping):
            return handler(data)
        provenance: dict[str, Given] = {}
        values: Inputs = {}
        for key, value in data.items():
            if isinstance(value, Given):
                provenance[key] = value
                values[key] = value.value
            else:
                values[key] = value
        spec = handler(values)
        if provenance:
            for key, value in provenance.items():
                if isinstance(value, Stated):
                    _check_range(cls._widest(key), key, getattr(spec, key), value)
            spec._provenance.update(provenance)
        return spec

    @classmethod
    def _widest(cls, key: str) -> FieldInfo:
        """Return the field *key* of the first base that has it: of ``kind`` that is the field of any kind."""
        bases = (base for base in reversed(cls.__mro__) if issubclass(base, Spec))
        return next(base.model_fields[key] for base in bases if key in base.model_fields)

    def provenance(self, field: str) -> Given | None:
        """Return the provenance of *field*; None if it was not stated.

        The data sheet of a drive uses it to pass origins on to the numbers that follow from its figures.
        """
        return self._provenance.get(field)

    def entries(self) -> Inputs:
        """Return the values of the fields by name, each a `Given` if its provenance is known.

        Nested specs stay specs.
        """
        entries = dict(self)
        for name, provenance in self._provenance.items():
            entries[name] = replace(provenance, value=entries[name])
        return entries

    def inputs(self) -> Inputs:
        """Return the inputs that build this spec again, by field, with provenance.

        Nested specs become tables, and tuples become lists.  The caller may override values in them.
        """
        return {
            name: _inputs(getattr(self, name), self._provenance.get(name)) for name in type(self).model_fields
        }

    def numbers(self, prefix: str = "") -> Iterator[Number]:
        """Yield every number and named choice of this spec and of nested specs, with its provenance.

        A flag counts as a number.  A text or None is yielded only if its provenance was stated.  *prefix* is
        put before each path: the path of this spec in another spec, with a dot at its end.
        """
        for name in type(self).model_fields:
            unit = unit_of(type(self).model_fields[name])
            yield from _numbers(getattr(self, name), f"{prefix}{name}", unit, self._provenance.get(name))


class NoNumbers(Spec):
    """A spec without fields."""


def _check_range(field: FieldInfo, key: str, value: Any, provenance: Stated) -> None:
    """Check the origin of *provenance*, and that its range includes *value*.

    The ends of the range must be values of *field*.

    Raises:
        BadValue: the origin or the range is not valid.
    """
    if provenance.extra_keys:
        raise BadValue(
            f"has the unknown key {provenance.extra_keys[0]}; beside value it may have origin, source, low,"
            " high and targets", key,
        )  # fmt: skip
    if not isinstance(provenance.origin, Origin):
        raise BadValue(f"has the origin {provenance.origin!r}; use one of {', '.join(Origin)}", key)
    annotation: Any = field.annotation  # the annotation of `X | None` has the metadata inside
    if field.metadata:
        annotation = Annotated[annotation, *field.metadata]
    reader: TypeAdapter[Any] = TypeAdapter(annotation)
    try:
        low, high = map(reader.validate_python, (provenance.low, provenance.high))
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise BadValue(f"low and high: {message}", key) from None
    if isinstance(value, str):
        if value not in (low, high):
            problem = f"{value} is not one of its two ends; give low and high, of which one is {value}"
            raise BadValue(problem, key)
    elif not low <= value <= high:
        raise BadValue(
            f"{value} is outside its range; give low and high that include it, not {low} and {high}", key
        )


def _inputs(value: Any, provenance: Given | None) -> Any:
    if isinstance(value, Spec):
        return value.inputs()
    if isinstance(value, tuple):
        return [_inputs(item, None) for item in value]
    if isinstance(value, Named):
        return {name: _inputs(item, None) for name, item in value.items()}
    if isinstance(provenance, Followed):
        return replace(provenance, value=value)
    if provenance is not None:
        return Given(
            value, provenance.origin, provenance.source, provenance.low, provenance.high, provenance.targets
        )
    return value


def _numbers(value: Any, path: str, unit: str, provenance: Given | None) -> Iterator[Number]:
    if isinstance(value, Spec):
        yield from value.numbers(f"{path}.")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{path}[{index}]", unit, provenance)
    elif isinstance(value, Named):
        for name, item in value.items():
            yield from _numbers(item, f"{path}.{name}", unit, provenance)
    elif isinstance(value, int | float) or provenance is not None:
        yield Number(path, value, unit, provenance)


def unit_of(field: FieldInfo) -> str:
    """Return the unit of *field*: ns, B or B/s, or 1 for all else, such as a plain number, a flag or a text.

    A field that may be None has the unit of its values.
    """
    optional = [mark for kind in get_args(field.annotation) for mark in getattr(kind, "__metadata__", ())]
    return next((mark.name for mark in (*field.metadata, *optional) if isinstance(mark, Unit)), "1")


def units_of(spec: type[Spec]) -> Mapping[str, str]:
    """Return the units of the fields of *spec* by name, as `unit_of` has them; a nested spec has 1."""
    return {name: unit_of(field) for name, field in spec.model_fields.items()}
