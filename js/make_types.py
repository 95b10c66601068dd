"""Write js/api.d.ts: the answers of the service as TypeScript types, read from its OpenAPI document.

The JavaScript of the workbench names them in JSDoc comments, such as `@type {Api.Map}`, so that `tsc` finds a field that no
answer has. An answer has every field of its type.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HEAD = "// Made by js/make_types.py of the OpenAPI document: do not edit.\n"
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def name_of(schema: str) -> str:
    """Return the name of a schema's type: where it differs between questions and answers, the answer has the plain name."""
    return schema.removesuffix("-Output").replace("-", "")


def type_of(schema: dict[str, Any] | bool) -> str:
    """Return a JSON Schema as a TypeScript type; what it leaves open is `any`."""
    if isinstance(schema, bool) or not schema:
        return "any"
    if "$ref" in schema:
        return name_of(str(schema["$ref"]).rpartition("/")[2])
    for several, mark in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if several in schema:
            return f"({mark.join(type_of(one) for one in schema[several])})"
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(map(type_of, schema['prefixItems']))}]"
        case "array":
            return f"Array<{type_of(schema.get('items', True))}>"
        case "object" if "properties" in schema:
            fields = (f"{json.dumps(name)}: {type_of(of)};" for name, of in schema["properties"].items())
            return f"{{ {' '.join(fields)} }}"
        case "object":
            return f"Record<string, {type_of(schema.get('additionalProperties', True))}>"
        case simple:
            return SIMPLE.get(str(simple), "any")


def declarations(document: dict[str, Any]) -> str:
    """Return every schema of an OpenAPI document as a type of the namespace Api."""
    schemas = document["components"]["schemas"]
    lines = (f"  type {name_of(name)} = {type_of(schema)};" for name, schema in sorted(schemas.items()))
    return HEAD + "declare namespace Api {\n" + "\n".join(lines) + "\n}\n"


def write(target: Path) -> None:
    from sdcmap.web.service import make_app
    from sdcmap.web.workspace import Workspace

    with tempfile.TemporaryDirectory() as folder:
        document = make_app(Workspace(Path(folder).resolve())).openapi()
    target.write_text(declarations(document), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "api.d.ts")
