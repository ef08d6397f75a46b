"""The studio's HTTP API, described from its routes and forms.

    python -m pairlearn.studio.server.openapi > src/pairlearn/studio/server/static/openapi.json

The file is served as ``/static/openapi.json``.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec
from starlette.routing import Route

from pairlearn.studio.server import api, supervisor
from pairlearn.studio.server.app import routes

FORMS: dict[Any, type[msgspec.Struct]] = {
    api.post_answer: api.AnswerForm,
    api.post_undo: api.UndoForm,
    api.post_practice: api.PracticeForm,
    supervisor.post_settle: supervisor.SettleForm,
    supervisor.post_link: supervisor.NameForm,
    supervisor.post_renew: supervisor.AnnotatorForm,
    supervisor.post_end: supervisor.AnnotatorForm,
}
_HERE = "#/components/schemas"
QUERIES = {api.get_image: "item", api.get_ahead: "pair"}
TYPES = {api.get_image: "image/*", supervisor.get_export: "application/x-ndjson"}


def describe() -> dict[str, Any]:
    """The API as an OpenAPI 3.1 document."""
    forms = list(dict.fromkeys(FORMS.values()))
    found, schemas = msgspec.json.schema_components(
        forms, ref_template="#/components/schemas/{name}"
    )
    schema = dict(zip(forms, found, strict=True))
    paths: dict[str, Any] = {}
    for route in routes():
        if not isinstance(route, Route) or not ("/api/" in route.path or "/image" in route.path):
            continue
        path = route.path.replace(":int", "")
        method = "post" if route.endpoint in FORMS else "get"
        summary = (inspect.getdoc(route.endpoint) or "").partition("\n\n")[0].replace("\n", " ")
        media = TYPES.get(route.endpoint, "application/json")
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": f"{method} {path}",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": {"type": kind}}
                for name, place, kind in (
                    ("annotator", "path", "integer"),
                    (QUERIES.get(route.endpoint, ""), "query", "string"),
                )
                if name and (place == "query" or "{annotator}" in path)
            ],
            "responses": {
                "200": {"description": "done", "content": {media: {}}},
                "default": {
                    "description": "refused, with the reason",
                    "content": {"application/json": {"schema": {"$ref": f"{_HERE}/Refusal"}}},
                },
            },
        }
        if method == "post":
            body = {"application/json": {"schema": schema[FORMS[route.endpoint]]}}
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
