"""What the classes of configuration are made of: sections with keys, and types of values.

A class declares the keys of a mapping in a YAML file, each with its type and meaning:

    class Sweep(Section):
        train_sizes: Annotated[list[Count], Len(1)]
        '''Numbers of training rows.'''
        datasets: Maybe[Names] = None
        '''Only these data sets; all if not given.'''

A key that is not given is None. If a key is a Python keyword, its attribute's name ends with `_`.
Errors become sentences in `study.configuration.faults`.
"""

from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Len, Lt
from pydantic import BaseModel, ConfigDict, StringConstraints, WrapValidator, model_validator
from pydantic_core import PydanticCustomError, PydanticOmit, core_schema

NAME = "^[A-Za-z0-9][A-Za-z0-9_]*$"
T = TypeVar("T")


def kind_of(value):
    """The kind of a YAML value, in words."""
    kinds = {str: "text", bool: "true/false", dict: "a mapping", list: "a list"}
    words = kinds | {tuple: "a list", type(None): "null", bytes: "binary data", set: "a set"}
    dates = {"date": "a date", "datetime": "a time"}
    return words.get(type(value)) or dates.get(type(value).__name__, "a number")


def kind_of_type(kind):
    """The kind of the values that a type takes, in words."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    origin = get_origin(kind) or kind
    if origin is Literal:
        return kind_of(get_args(kind)[0])
    if isinstance(origin, type) and issubclass(origin, (dict, BaseModel)):
        return "a mapping"
    return "a whole number" if origin is int else kind_of(origin())


class _ByKind:
    """Chooses the alternative of a union by the value's kind, so that an error is about that one alone."""

    def __get_pydantic_core_schema__(self, source, handler):
        parts = get_args(source) if get_origin(source) in (Union, UnionType) else (source,)
        parts = [part for part in parts if part is not type(None) or self.null]
        if len(parts) == 1:
            return handler.generate_schema(parts[0])
        kinds = [kind_of_type(part) for part in parts]
        expected = " or ".join(dict.fromkeys([*(k for k in kinds if k != "text"), *kinds]))
        choices = {}
        for kind, part in zip(kinds, parts, strict=True):
            choice = handler.generate_schema(part)
            if get_origin(part) is Literal and kind == "text":
                context = {"words": list(get_args(part)), "expected": expected.replace("text", "")}
                choice = core_schema.custom_error_schema(
                    choice,
                    custom_error_type="words",
                    custom_error_context=context,
                    custom_error_message="one of the words",
                )
            choices[TAG + kind.replace(" whole", "")] = choice
        return core_schema.tagged_union_schema(
            choices,
            discriminator=self.tag,
            custom_error_type="kind",
            custom_error_message="wrong kind",
            custom_error_context={"expected": expected},
        )

    def __init__(self, null):
        self.null = null

    @staticmethod
    def tag(value):
        return TAG + ("a mapping" if isinstance(value, BaseModel) else kind_of(value))


TAG = "\0"  # begins the parts of an error's place that name a union's alternative


class _Distinct:
    def __get_pydantic_core_schema__(self, source, handler):
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema, handler):
        return handler(schema) | {"uniqueItems": True}

    @staticmethod
    def check(values):
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise PydanticCustomError("twice", "twice", {"value": twice[0]})
        return values


class _Made:
    """Refuses a file's key that only the workflow makes. A context is given for files only."""

    def __get_pydantic_core_schema__(self, source, handler):
        return core_schema.with_info_wrap_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema, handler):
        raise PydanticOmit

    @staticmethod
    def check(value, check, info):
        if info.context is not None:
            raise PydanticCustomError("made", "made")
        return check(value)


# A number stays as it is written: 1 is not 1.0.
AS_WRITTEN = WrapValidator(lambda value, check: (check(value), value)[1])
DISTINCT = _Distinct()
Either = Annotated[T, _ByKind(null=True)]  # a union
Maybe = Annotated[T | None, _ByKind(null=False)]  # a key that may be left out, but not null
MADE = _Made()  # a key that the workflow adds; no file may have it

Number = Annotated[float, AS_WRITTEN]
NotNegative = Annotated[float, Ge(0), AS_WRITTEN]
Positive = Annotated[float, Gt(0), AS_WRITTEN]
Share = Annotated[float, Gt(0), Lt(1), AS_WRITTEN]  # between 0 and 1, without these
AtLeastOne = Annotated[float, Ge(1), AS_WRITTEN]
UpToOne = Annotated[float, Ge(0), Le(1), AS_WRITTEN]
BelowOne = Annotated[float, Ge(0), Lt(1), AS_WRITTEN]
Count = Annotated[int, Ge(1)]
Several = Annotated[int, Ge(2)]
NotEmpty = Annotated[str, Len(1)]
Name = Annotated[str, StringConstraints(pattern=NAME)]
Names = Annotated[list[str], Len(1), DISTINCT]
Pair = Annotated[list[Number], Len(2, 2)]


class Section(BaseModel):
    """A mapping with fixed keys. Its keys stay in the order of the file; defaults come first.

    NEEDS: key -> other keys that must be given with it.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        alias_generator=lambda name: name.removesuffix("_"),
    )
    NEEDS: ClassVar[dict[str, tuple[str, ...]]] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _in_order(cls, value, check, info):
        if not isinstance(value, dict):
            return check(value)
        if info.context is not None:
            info.context[id(value)] = cls  # for the names of its keys in errors
        section = check(value)
        for name, others in cls.NEEDS.items():
            for other in others:
                if name in value and other not in value:
                    raise PydanticCustomError("needs", "needs", {"key": name, "missing": other})
        values, given = section.__dict__, section.__pydantic_fields_set__
        filled = [name for name in values if name not in given and values[name] is not None]
        own = {field.alias: name for name, field in cls.model_fields.items()}
        order = dict.fromkeys([*filled, *(own[key] for key in value), *values])
        given.update(filled)
        ordered = {name: values[name] for name in order}
        values.clear()
        values.update(ordered)
        return section

    def __setattr__(self, name, value):
        if name not in self.__pydantic_fields_set__:
            self.__dict__.pop(name, None)  # a key that is added is the last one
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.__dict__[name] = None
        self.__pydantic_fields_set__.discard(name)

    def mapping(self) -> dict[str, Any]:
        """Each key that is given, or has a default, with its value."""
        fields = type(self).model_fields
        names = (name for name in self.__dict__ if name in self.__pydantic_fields_set__)
        return {fields[name].alias or name: self.__dict__[name] for name in names}

    def but(self, **changes: Any) -> Self:
        """A copy with other values of some keys."""
        return self.model_copy(update=changes)

    def plain(self) -> dict:
        """The mapping, with defaults, as YAML and JSON have it."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)


def plain(sections):
    """A dictionary of sections as YAML and JSON have it."""
    return {name: section.plain() for name, section in sections.items()}
