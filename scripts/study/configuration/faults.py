"""What is wrong with a value of the configuration, in words."""

import json
import math
import re
import textwrap
from difflib import get_close_matches

from study import canonical
from study.configuration.section import MADE, NAME, TAG, kind_of

LISTED = 700  # maximum length of the list of valid names in a message
RENAMED = {"separator": "delimiter", "sep": "delimiter"}  # key by another name -> the key
COMPARED = {"gt": "greater than", "ge": "at least", "lt": "less than", "le": "at most"}
# What pydantic expects -> in words.
EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true/false",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}


def sentences(error, value, classes):
    """(place, place of the key to name, sentence) of each fault that pydantic has found in `value`.

    classes: id of a mapping in `value` -> its class.
    """
    found = []
    for number, fault in enumerate(error.errors(include_url=False)):
        at = tuple(p for p in fault["loc"] if not (isinstance(p, str) and p.startswith(TAG)))
        path, kind = at, fault["type"]
        kind = fault["type"] = "extra_forbidden" if kind == "made" else kind
        if kind in ("extra_forbidden", "missing"):
            at = at[:-1]
        elif path[-1:] == ("[key]",):
            path = at = at[:-2]
        found.append(([str(p) for p in at], kind != "extra_forbidden", number, path, at, fault))
    found.sort(key=lambda each: each[:3])
    unknown = {(each[4], each[3][-1]) for each in found if not each[1]}
    return [
        (at if fault["type"] == "missing" else path, at, _sentence(fault, path, value, classes))
        for *_, path, at, fault in found
        # A misspelt key is reported, and not the required key that is then missing.
        if not (
            fault["type"] == "missing"
            and any(at == place and get_close_matches(name, path[-1:]) for place, name in unknown)
        )
    ]


def _sentence(fault, path, whole, classes):
    kind, value, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        for part in path[:-1]:
            whole = whole[part]
        fields = classes[id(whole)].model_fields.values()
        valid = [field.alias for field in fields if MADE not in field.metadata]
        if RENAMED.get(path[-1]) in valid:
            return f"the key {path[-1]!r} is called {RENAMED[path[-1]]!r}"
        return f"unknown key {path[-1]!r}{nearest(path[-1], valid)}"
    if kind == "missing":
        return f"the key {path[-1]!r} is missing"
    if kind == "needs":
        return f"the key {context['missing']!r} is missing ({context['key']!r} needs it)"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        return f"the name {value!r} may hold letters, digits and underscores only"
    if isinstance(value, str) and is_number(value) and kind != "literal_error":
        return text_number(value)
    if kind == "kind" or kind.removesuffix("_type") in EXPECTED:
        return wrong_type(context.get("expected") or EXPECTED[kind.removesuffix("_type")], value)
    if kind == "words":
        return f"must be {context['expected']}{_one_of(context['words'], value)}"
    if kind == "literal_error":
        words = re.findall("'([^']*)'", context["expected"])
        return f"must be {_one_of(words, value)}"
    for sign, words in COMPARED.items():
        if sign in context:
            return f"must be {words} {context[sign]:g}, not {value}"
    if kind == "twice":
        return f"names {context['value']!r} twice"
    if kind.endswith("too_short"):
        least = context["min_length"]
        return "must not be empty" if least == 1 else f"needs at least {least} values"
    if kind.endswith("too_long"):
        return f"takes at most {context['max_length']} values"
    return f"{show(value)} does not fit: {fault['msg'][0].lower()}{fault['msg'][1:]}"


def nearest(name, valid):
    """The end of an error message: "; did you mean 'x'?" or the list of valid names."""
    near = get_close_matches(str(name), [str(v) for v in valid], n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    listed = textwrap.shorten(", ".join(map(str, valid)), LISTED, placeholder=" ..")
    return f" (valid: {listed})" if valid else ""


def _one_of(words, value):
    """All of a few words, of which the nearest may not be the one that is meant."""
    near = nearest(value, words) if get_close_matches(str(value), words) else ""
    return f"one of {', '.join(words)}, not {value!r}{near}"


def key(path):
    """A key's place as text, such as sweeps.epsilon.epsilons[0]."""
    key = ""
    for part in path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def show(value):
    words = {"True": "true", "False": "false", "None": "null", "inf": ".inf", "nan": ".nan"}
    return words.get(str(value), repr(value)) if not isinstance(value, str) else repr(value)


def wrong_type(expected, value):
    shown = "" if value is None or isinstance(value, (dict, list)) else f" ({show(value)})"
    quotes = ": write it in quotes" if isinstance(value, bool) and "text" in expected else ""
    return f"must be {expected}, not {kind_of(value)}{shown}{quotes}"


def in_yaml(value):
    """A value as YAML text. YAML reads an exponent only after a decimal point."""
    if isinstance(value, float) and math.isfinite(value):
        mantissa, e, exponent = canonical.number(value).partition("e")
        return f"{mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"
    return json.dumps(value)


def text_number(value):
    number = in_yaml(float(value))
    return f"{value!r} is text, not a number: write {number}, without quotes"


def is_number(text):
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip()) is not None
