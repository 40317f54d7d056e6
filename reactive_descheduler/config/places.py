"""Where in the file that stands which a loaded policy names by plugin, not by index."""

from __future__ import annotations

from collections.abc import Mapping

from .findings import path_text, value_at
from .yaml_lines import Document


def places(document: Document) -> Mapping[str, int]:
    """Return the line of every path as people are told it.

    Beside `profiles[0].pluginConfig[1].args.nodeFit` there is `profiles[0].DefaultEvictor.nodeFit`;
    the plugin alone, `profiles[0].DefaultEvictor`, is where it is enabled.
    """
    found = {path_text(path): line for path, line in document.lines.items()}
    for path, line in document.lines.items():
        # What was written twice has lines also of the one that does not count.
        match path:
            case ("profiles", int(), "plugins", str(), "enabled", int()):
                plugin = value_at(document.data, path)
            case ("profiles", int(), "pluginConfig", int(), "args", _, *_):
                plugin = value_at(document.data, (*path[:4], "name"))
            case _:
                continue
        if isinstance(plugin, str):
            inside = path[5:] if path[2] == "pluginConfig" else ()
            found.setdefault(path_text((*path[:2], plugin, *inside)), line)
    return found


def line_of(path: str, places: Mapping[str, int]) -> int | None:
    """Return the line of a path, or of the nearest thing around it that has one."""
    while path and path not in places:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return places.get(path)
