"""The stored forecast of a project, which `status` prints without making one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = "forecast.json"


def read_forecast(folder: Path) -> dict[str, Any]:
    """The stored forecast: its parts, and ``latest``, the last change that it knows of."""
    try:
        stored: dict[str, Any] = json.loads((folder / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return stored
