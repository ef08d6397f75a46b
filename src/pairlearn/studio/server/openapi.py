"""The studio's HTTP API, described from its routes and forms.

    python -m pairlearn.studio.server.openapi > src/pairlearn/studio/server/static/openapi.json

The file is served as ``/static/openapi.json``.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec

import pairlearn.studio.server.pages  # noqa: F401 - its calls are described, too
from pairlearn.studio.server.api import CALLS

_HERE = "#/components/schemas"


def describe() -> dict[str, Any]:
    """The API as an OpenAPI 3.1 document."""
    forms = list(dict.fromkeys(one.form for one in CALLS if one.form))
    found, schemas = msgspec.json.schema_components(
        forms, ref_template="#/components/schemas/{name}"
    )
    schema = dict(zip(forms, found, strict=True))
    paths: dict[str, Any] = {}
    for one in CALLS:
        path = one.path.replace(":int", "")
        method = "post" if one.form else "get"
        summary = (inspect.getdoc(one.handler) or "").partition("\n\n")[0].replace("\n", " ")
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": f"{method} {path}",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": {"type": kind}}
                for name, place, kind in (
                    ("annotator", "path", "integer"),
                    (one.query, "query", "string"),
                )
                if name and (place == "query" or "{annotator}" in path)
            ],
            "responses": {
                "200": {"description": "done", "content": {one.media: {}}},
                "default": {
                    "description": "refused, with the reason",
                    "content": {"application/json": {"schema": {"$ref": f"{_HERE}/Refusal"}}},
                },
            },
        }
        if one.form:
            body = {"application/json": {"schema": schema[one.form]}}
            operation["requestBody"] = {"required": True, "content": body}
        paths[path] = {method: operation}
    refusal = {"type": "object", "properties": {"error": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pairlearn annotation studio",
            "version": "1",
            "description": "The token is the last part of a link: an annotator's for their own "
            "number, the supervisor's for all other paths. Of several projects on one server each "
            "has the name of its folder before these paths.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas | {"Refusal": refusal},
        },
    }


if __name__ == "__main__":
    print(json.dumps(describe(), indent=1))
