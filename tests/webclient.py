"""A client that uses only the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import jsonschema


class Generated:
    """`Generated(http).choose(name="cps", rule=None)`: every operation by its id, every answer held against its schema."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.document = http.get("/api/openapi.json").json()
        self.operations = {
            operation["operationId"]: (method, path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, path, operation = self.operations[name]
        return lambda **given: self._call(method, path, operation, given)

    def _call(self, method: str, path: str, operation: dict[str, Any], given: dict[str, Any]) -> Any:
        query: dict[str, Any] = {}
        for parameter in operation.get("parameters", []):
            named = parameter["name"]
            if parameter["in"] == "path":
                path = path.replace(f"{{{named}}}", str(given.pop(named)))
            elif named in given:
                query[named] = given.pop(named)
        body = operation.get("requestBody", {}).get("content", {})
        how: dict[str, Any] = {"params": query}
        if "multipart/form-data" in body:
            fields = self._properties(body["multipart/form-data"]["schema"])
            files = {
                key
                for key, schema in fields.items()
                if "contentMediaType" in schema or schema.get("format") == "binary"
            }
            how |= {"files": {key: given[key] for key in files & set(given)}}
            how |= {"data": {key: value for key, value in given.items() if key not in files}}
        elif body:
            self._hold(given, body["application/json"]["schema"])
            how["json"] = given
        answer = self.http.request(method.upper(), path, **how)
        result = operation["responses"][str(answer.status_code)]["content"]  # a status that is not stated is a KeyError
        media = answer.headers["content-type"].partition(";")[0]
        assert media in {name.partition(";")[0] for name in result}, media
        if media != "application/json":
            return answer.content
        self._hold(answer.json(), result[media]["schema"])
        return answer.json()

    def _properties(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return dict(schema["properties"])

    def _hold(self, value: Any, schema: dict[str, Any]) -> None:
        jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)
