"""Pipeline files of other tools, converted by packages that know them: entry points of the group `onward.pipeline_converters`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from onward.errors import InvalidInput
from onward.plugins import PluginGroup, load_plugin, plugin_names


@dataclass(frozen=True, kw_only=True)
class ConvertedPipeline:
    text: str  # of the pipeline's file
    files: dict[str, str] = field(default_factory=dict)  # that its commands name: path and text
    notes: tuple[str, ...] = ()


Converter = Callable[[Path], ConvertedPipeline]  # InvalidInput where it is not a file of its tool


def convert_pipeline(path: Path) -> ConvertedPipeline:
    """By the first converter that knows files of this kind."""
    refusals: list[InvalidInput] = []
    for name in plugin_names(PluginGroup.CONVERTERS):
        convert: Converter = load_plugin(PluginGroup.CONVERTERS, name)
        try:
            return convert(path)
        except InvalidInput as error:
            refusals.append(error)
    if not refusals:
        raise InvalidInput(
            f"{path} cannot be converted: no pipeline converter is installed",
            hint=f"install a package with an entry point of {PluginGroup.CONVERTERS}",
        )
    raise InvalidInput("\n".join(error.message for error in refusals), hint=refusals[0].hint)
