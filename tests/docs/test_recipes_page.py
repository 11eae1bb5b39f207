"""The page about recipes: every key has its paragraph, every paragraph its key, and the example can be used."""

from __future__ import annotations

import re
from pathlib import Path

from onward.inputs.params.sections import Section
from onward.inputs.recipes.catalog import read_recipe
from onward.inputs.recipes.sections import BoundIn, FitIn, OutputIn, RecipeIn, RecipeInputIn, RequestLimitsIn, SettingIn

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "recipes.md").read_text()
SECTIONS: dict[str, type[Section]] = {
    "": RecipeIn,
    "inputs.": RecipeInputIn,
    "settings.": SettingIn,
    "resources.": BoundIn,
    "fit.": FitIn,
    "outputs.": OutputIn,
    "limits.": RequestLimitsIn,
}


def test_every_key_has_a_paragraph_and_every_paragraph_a_key() -> None:
    keys = {above + name.replace("_", "-") for above, section in SECTIONS.items() for name in section.model_fields}
    assert set(re.findall(r"^\*\*`([^`]+)`\*\* ", PAGE, re.MULTILINE)) == keys


def test_every_key_is_described_where_it_is_read() -> None:
    assert [name for section in SECTIONS.values() for name, field in section.model_fields.items() if not field.description] == []


def test_the_example_can_be_used(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "recipe.yaml").write_text(example)
    assert read_recipe(folder).title == "Learn to tell the layers of a page apart"
