"""A JSON schema of the policy file for editors, out of the models that read it.

It says what is in the models' types, so it lets pass what only a check of the loader finds;
whatever it refuses is refused by `validate` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from .corrections import Correction
from .evictor import DefaultEvictorArguments
from .loaded import PluginSpec
from .policy import API_VERSION, KIND, METRICS_SOURCES, DeschedulerPolicy

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EVICTOR = "DefaultEvictor"
_DURATION = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
"""How a duration begins; the loader reads the rest."""
_PERCENTAGE = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$"}

Schema = dict[str, object]


class _Documents(GenerateJsonSchema):
    """Writes types as documents have them: durations and percentages are texts."""

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^[-+]?(0$|{_DURATION.removeprefix('^')})"}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return dict(_PERCENTAGE)  # the only dataclass is Percent

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        names = {"enum": [str(each) for each in Correction]}
        return {"anyOf": [{"enum": ["all", "none"]}, names, {"type": "array", "items": names}]}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        # Defaults stand in the docs; here they would be Python's, not the document's.
        return self.generate_inner(schema["schema"])


def policy_schema(plugins: Mapping[str, PluginSpec]) -> Schema:
    """Return the schema of a whole policy file.

    Args:
        plugins: every strategy there is, by name.
    """
    definitions: Schema = {}
    schema = _of(DeschedulerPolicy, definitions)
    properties = cast(Schema, schema["properties"])
    properties["apiVersion"], properties["kind"] = {"const": API_VERSION}, {"const": KIND}
    arguments: dict[str, type[BaseModel]] = {EVICTOR: DefaultEvictorArguments}
    arguments |= {spec.name: spec.arguments for spec in plugins.values() if spec.arguments}
    config = cast(Schema, definitions["PluginConfig"])
    _properties(config)["name"] = {"enum": sorted(arguments)}
    config["allOf"] = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"args": _arguments(model, definitions)}},
        }
        for name, model in sorted(arguments.items())
    ]
    points = _properties(cast(Schema, definitions["Plugins"]))
    for point in ("deschedule", "balance"):
        names = sorted(spec.name for spec in plugins.values() if point in spec.extension_points)
        points[point] = _plugin_set(names)
    for point in ("filter", "preevictionfilter", "preEvictionFilter"):
        points[point] = _plugin_set([EVICTOR])
    source = _properties(cast(Schema, definitions["MetricsProvider"]))
    source["source"] = {"enum": list(METRICS_SOURCES)}
    reactive = _properties(cast(Schema, definitions["ReactiveSettings"]))
    strategies = cast(Schema, reactive["strategies"])
    strategies["propertyNames"] = {"enum": sorted(plugins)}
    return {
        "$schema": DIALECT,
        "title": f"{KIND} {API_VERSION}",
        **_tidied(schema),
        "required": ["apiVersion", "kind"],
        "$defs": _tidied(dict(sorted(definitions.items()))),
    }


_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""Bounds that pydantic leaves under its own names where a validator stands before them."""
_EXACT = 2**53
"""From here on JSON's readers need not tell numbers apart, so a bound says nothing."""


def _tidied(schema: Schema) -> Schema:
    """Return the schema with JSON Schema's names for bounds, and without titles that say names
    twice."""

    def tidy(value: object) -> object:
        if isinstance(value, dict):
            return {
                _BOUNDS.get(key, key): tidy(inner)
                for key, inner in value.items()
                if not (key == "title" and isinstance(inner, str))
                and not (key in _BOUNDS and abs(cast(float, inner)) >= _EXACT)
            }
        return [tidy(each) for each in value] if isinstance(value, list) else value

    return cast(Schema, tidy(schema))


def _arguments(model: type[BaseModel], definitions: Schema) -> Schema:
    """Take in the schema of a plugin's arguments; upstream tolerates apiVersion and kind there."""
    schema = _of(model, definitions)
    _properties(schema).update({"apiVersion": {"type": "string"}, "kind": {"type": "string"}})
    definitions[model.__name__] = schema
    return {"$ref": f"#/$defs/{model.__name__}"}


def _of(model: type[BaseModel], definitions: Schema) -> Schema:
    """Return a model's own schema, having put those of the models in it with the others."""
    mode: JsonSchemaMode = "validation"
    schema: Schema = model.model_json_schema(by_alias=True, schema_generator=_Documents, mode=mode)
    definitions.update(cast(Schema, schema.pop("$defs", {})))
    return schema


def _properties(schema: Schema) -> Schema:
    return cast(Schema, schema.setdefault("properties", {}))


def _plugin_set(names: Iterable[str]) -> Schema:
    of_names = {"type": "array", "items": {"enum": list(names)}}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {"enabled": of_names, "disabled": {"type": "array"}},
    }
