"""Recipes: what a request may fill in, and that nothing of a message gets any further than that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.errors import InvalidInput, NotFound
from onward.inputs.recipes.catalog import Recipes, read_recipe
from onward.inputs.recipes.definition import Recipe
from onward.model.commands.placeholders import fill, placeholder_values
from onward.model.requests.request import RequestInput
from onward.model.spec import RunDraft

PAGES = """
name: pages
recipe:
  title: Pixel classification by layer
  inputs:
    Image: {required: true, max-size: 1M}
    Music Layer: {}
    "rgba PNG - Layer {n}": {gaps: false}
  one-of: [[Music Layer, "rgba PNG - Layer {n}"]]
  settings:
    Maximum number of training epochs: {type: int, min: 1, default: 15, to: params.epochs}
    Rate: {type: float, min: 0, max: 1, to: params.rate}
    Note: {type: str, max: 40, default: none, to: params.note}
    Verbose: {type: bool, default: false}
    Backend: {type: choice, choices: [jax, torch], default: jax, to: params.backend}
    Maximum time (D-HH:MM): {type: duration, max: 1-00:00, default: 0-06:00, to: [resources.time, limits.total-time]}
    Maximum memory (MB): {type: memory, min: 1024, max: 256G, default: 257000, to: resources.mem}
    CPUs: {type: int, min: 1, default: 6, to: resources.cpus-per-task}
    Slurm Notification Email: {type: str, default: "", to: resources.mail-user}
  resources:
    gpus: {max: 2}
    partition: {choices: [gpu, long]}
  outputs:
    Background Model: {file: Background Model.keras, required: true}
    "Model {n}": {file: "models/{n}.keras", of: "rgba PNG - Layer {n}"}
  limits: {deadline: 7-00:00:00, inputs: 2M, download-time: 00:10:00}
train:
  command: python train.py --epochs {params.epochs} --note {params.note} --rate={params.rate}
  params: {epochs: 1, note: none, rate: 0.5, backend: jax}
  resources: {gres: "gpu:1"}
"""
HOSTS = ("rodan.example.org", "store:8080")
IMAGE = RequestInput(name="Image", url="https://rodan.example.org/uploads/page.png")
LAYERS = [RequestInput(name=f"rgba PNG - Layer {n}", url=f"https://rodan.example.org/uploads/{n}.png") for n in range(3)]


def install(root: Path, text: str = PAGES, name: str = "pages") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(text)
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return read_recipe(install(tmp_path))


def filled(
    recipe: Recipe, settings: dict[str, Any] | None = None, inputs: Sequence[RequestInput] = (IMAGE, *LAYERS), **more: Any
) -> RunDraft:
    return recipe.fill(settings=settings or {}, inputs=inputs, hosts=HOSTS, **more)


def refusal(recipe: Recipe, settings: dict[str, Any] | None = None, inputs: Sequence[RequestInput] = (IMAGE, *LAYERS), **more: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        filled(recipe, settings, inputs, **more)
    return caught.value.message


def test_settings_go_where_the_recipe_says_and_all_are_in_the_request(recipe: Recipe) -> None:
    email = "lab@example.org"
    draft = filled(recipe, {"Maximum number of training epochs": 3, "Rate": 0.25, "Slurm Notification Email": email}, request="r-1")
    assert draft.params == {"epochs": 3, "note": "none", "rate": 0.25, "backend": "jax"}
    assert (draft.resources.time, draft.resources.mem, draft.resources.cpus_per_task) == (6 * 3600, 257000, 6)
    assert (draft.resources.mail_user, draft.resources.mail_type) == (email, "ALL")
    assert draft.limits.total_time == 6 * 3600
    assert draft.inputs is not None
    assert draft.inputs.request == "r-1"
    assert draft.inputs.settings["Verbose"] is False
    assert draft.inputs.settings["Maximum memory (MB)"] == 257000
    assert [(one.name, one.most) for one in draft.inputs.fetch][:2] == [("Image", 1 << 20), ("rgba PNG - Layer 0", 2 << 20)]
    assert (draft.inputs.hosts, draft.inputs.seconds, recipe.deadline) == (HOSTS, 600, 7 * 86400)


def test_a_number_beyond_its_bounds_is_taken_for_the_bound_where_the_recipe_says_so(tmp_path: Path) -> None:
    recipe = read_recipe(install(tmp_path, PAGES.replace("min: 1024, max: 256G", "clamp: true, min: 1024, max: 8G")))
    assert filled(recipe, {"Maximum memory (MB)": 257000}).resources.mem == 8192
    assert filled(recipe, {"Maximum memory (MB)": "2G"}).resources.mem == 2048
    assert filled(recipe, {"Maximum memory (MB)": 1}).resources.mem == 1024
    assert refusal(recipe, {"Maximum memory (MB)": 0}).endswith("found 0, expected a memory size such as 32G, or a number of MiB")


def test_a_setting_without_a_value_leaves_what_the_recipe_has(recipe: Recipe) -> None:
    draft = filled(recipe, {"Rate": None})
    assert draft.params["rate"] == 0.5
    assert draft.resources.mail_user is None
    assert draft.resources.gres == "gpu:1"


def test_everything_that_is_wrong_is_said_at_once(recipe: Recipe) -> None:
    settings = {"Maximum number of training epochs": 0, "CPU": 4, "Verbose": "yes", "Maximum memory (MB)": 12, "Backend": "theano"}
    assert refusal(
        recipe, settings, [RequestInput(name="Image", url="ftp://x/y"), RequestInput(name="Layer 0", url="/uploads/x")]
    ).splitlines() == [
        "setting 'CPU': unknown (did you mean CPUs?)",
        "setting 'Maximum number of training epochs': found 0, expected a whole number from 1",
        "setting 'Verbose': found 'yes', expected true or false",
        "setting 'Backend': found 'theano', expected jax or torch",
        "setting 'Maximum memory (MB)': found 12, expected a memory size such as 32G, or a number of MiB from 1G to 256G",
        "input 'Image': its address is not an http or https one (write it like https://rodan.example.org/uploads/page.png)",
        "input 'Layer 0': unknown; known are Image, Music Layer, rgba PNG - Layer {n}",
        "inputs: none of 'Music Layer', 'rgba PNG - Layer {n}' given, expected at least one",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Maximum number of training epochs", True),
        ("Maximum number of training epochs", 1.5),
        ("Maximum number of training epochs", "3; rm -rf /"),
        ("Maximum number of training epochs", 10**400),
        ("Rate", float("nan")),
        ("Rate", [0.5]),
        ("Note", "a\nb"),
        ("Note", "a\x85b"),
        ("Note", "a\x1b[2Jb"),
        ("Note", "x" * 41),
        ("Note", {"a": 1}),
        ("Verbose", 1),
        ("Backend", ["jax"]),
        ("Maximum time (D-HH:MM)", "2-00:00"),
        ("Maximum time (D-HH:MM)", "soon"),
        ("Maximum memory (MB)", 0),
        ("Maximum memory (MB)", "1024; true"),
        ("Slurm Notification Email", "a@b.c; rm -rf /"),
        ("Slurm Notification Email", "-a@b.c"),
        ("Slurm Notification Email", "$(id)@example.org"),
    ],
)
def test_a_value_outside_of_its_kind_or_bounds_is_refused(recipe: Recipe, name: str, value: object) -> None:
    assert f"setting '{name}': found" in refusal(recipe, {name: value})


@pytest.mark.parametrize(
    "text", ["; rm -rf /", "$(touch /tmp/x)", "`id`", "a b | c", "{params.rate}", "{{params.rate}}", "'\"\\", "#SBATCH -n 9"]
)
def test_a_text_of_a_sender_is_one_word_of_the_command_as_it_stands(recipe: Recipe, text: str) -> None:
    draft = filled(recipe, {"Note": text})
    argv = fill(draft.command, placeholder_values(draft.params, read="", write="", tensorboard=""))
    assert argv == ("python", "train.py", "--epochs", "15", "--note", text, "--rate=0.5")


def test_a_text_of_a_sender_cannot_be_an_option_of_the_command(recipe: Recipe) -> None:
    assert refusal(recipe, {"Note": "--checkpoint=/etc"}) == (
        "setting 'Note': found '--checkpoint=/etc', expected text that does not begin with '-'"
    )


@pytest.mark.parametrize(
    "command", ["bash -c 'echo {params.note}'", "[bash, -c, '{params.note}']", "python -c {params.note}", "['{params.note}']"]
)
def test_a_recipe_with_a_senders_text_in_a_programs_source_is_refused(tmp_path: Path, command: str) -> None:
    old = "python train.py --epochs {params.epochs} --note {params.note} --rate={params.rate}"
    with pytest.raises(InvalidInput, match="in what may be source code"):
        read_recipe(install(tmp_path, PAGES.replace(old, command)))


def test_resources_are_the_senders_only_where_the_recipe_says_so(recipe: Recipe) -> None:
    draft = filled(recipe, resources={"gpus": 2, "partition": "long"})
    assert (draft.resources.gpus, draft.resources.gres, draft.resources.partition) == ("2", None, "long")
    assert refusal(recipe, resources={"gpus": 3, "partition": "debug", "extra": ["--uid=0"], "mem": "1G"}).splitlines() == [
        "resources: gpus: found 3, expected a whole number to 2",
        "resources: partition: found 'debug', expected gpu or long",
        "resources: 'extra' cannot be chosen by a request; it may choose gpus, partition",
        "resources: 'mem' cannot be chosen by a request; it may choose gpus, partition",
    ]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("/uploads/page.png", "not an http or https one"),
        ("file:///etc/passwd", "not an http or https one"),
        (
            "https://evil.example.org/x",
            "on evil.example.org, which is not an allowed host (the site lists its allowed hosts in `gateway.hosts`",
        ),
        ("https://rodan.example.org.evil.org/x", "which is not an allowed host"),
        ("https://rodan.example.org@evil.org/x", "a name or password before its host"),
        ("https://rodan.example.org:8443/x", "on rodan.example.org:8443, which is not"),
        ("http://store/x", "on store, which is not"),
        ("https://rodan.example.org/a\r\nHost: evil", "characters that an address cannot have"),
        ("https://rodan.example.org:99999/x", "malformed"),
        ("http://169.254.169.254/latest", "which is not an allowed host"),
    ],
)
def test_an_address_that_is_not_of_an_allowed_host_is_refused(recipe: Recipe, url: str, why: str) -> None:
    assert why in refusal(recipe, inputs=[RequestInput(name="Image", url=url), *LAYERS])


@pytest.mark.parametrize(
    "url", ["https://RODAN.example.org/x?y=z", "http://rodan.example.org./x", "http://store:8080/x", "https://store:8080/x"]
)
def test_an_address_of_an_allowed_host_is_taken(recipe: Recipe, url: str) -> None:
    assert filled(recipe, inputs=[RequestInput(name="Image", url=url), *LAYERS]).inputs is not None


def test_a_gap_in_the_layers_is_named(recipe: Recipe) -> None:
    assert refusal(recipe, inputs=[IMAGE, LAYERS[0], LAYERS[2]]) == (
        "input 'rgba PNG - Layer 1': missing between 'rgba PNG - Layer 0' and 'rgba PNG - Layer 2', expected numbers without gaps"
    )
    assert filled(recipe, inputs=[IMAGE, *LAYERS[1:]]).inputs is not None


@pytest.mark.parametrize("name", ["rgba PNG - Layer 10", "rgba PNG - Layer 01", "rgba PNG - Layer ١", "rgba PNG - Layer {n}", "../Image"])
def test_a_name_that_the_recipe_does_not_have_is_refused(recipe: Recipe, name: str) -> None:
    assert ": unknown" in refusal(recipe, inputs=[IMAGE, *LAYERS, RequestInput(name=name, url=IMAGE.url)])


def test_what_an_input_is_said_to_be_is_checked_before_it_is_fetched(recipe: Recipe) -> None:
    large = RequestInput(name="Image", url=IMAGE.url, size=3 << 20, sha256="ABC")
    assert refusal(recipe, inputs=[large, large, *LAYERS]).splitlines() == [
        "input 'Image': found 'ABC', expected a SHA-256 as 64 small hexadecimal digits",
        "input 'Image': 3.1 MB, expected at most 1.0 MB",
        "input 'Image': found twice, expected once",
        "input 'Image': found 'ABC', expected a SHA-256 as 64 small hexadecimal digits",
        "input 'Image': 3.1 MB, expected at most 1.0 MB",
        "inputs: 6.3 MB together, expected at most 2.1 MB",
    ]


def test_outputs_follow_the_inputs_they_belong_to(recipe: Recipe) -> None:
    wanted = [(name, file, must) for name, file, must, _ in recipe.wanted(["Image", "rgba PNG - Layer 2", "rgba PNG - Layer 0"])]
    assert wanted == [
        ("Background Model", "Background Model.keras", True),
        ("Model 0", "models/0.keras", True),
        ("Model 2", "models/2.keras", True),
    ]


JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2) | st.just({"a": 1})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    given_settings=st.dictionaries(
        st.sampled_from(["Note", "Rate", "CPUs", "Backend", "Maximum time (D-HH:MM)"]) | st.text(), JSON, max_size=4
    ),
    resources=st.dictionaries(st.sampled_from(["gpus", "partition"]) | st.text(), JSON, max_size=2),
    url=st.text() | st.sampled_from(["http://[", "http://rodan.example.org:x/", "https://rodan.example.org/\u2028"]),
)
def test_whatever_a_message_holds_it_is_filled_in_or_refused_with_words(
    recipe: Recipe, given_settings: dict[str, Any], resources: dict[str, Any], url: str
) -> None:
    try:
        draft = filled(recipe, given_settings, [RequestInput(name="Image", url=IMAGE.url), *LAYERS], resources=resources)
    except InvalidInput as error:
        assert all(line.isprintable() for line in error.message.split("\n"))
    else:
        assert draft.command == recipe.draft.command
        assert draft.environment == recipe.draft.environment
        assert all(len(word.splitlines()) <= 1 for word in map(str, draft.params.values()))
    with pytest.raises(InvalidInput):
        filled(recipe, inputs=[RequestInput(name="Image", url=f"{url}//"), *LAYERS])


# ── a site's recipes ──────────────────────────────────────────────────────────


def test_recipes_are_found_by_name_and_read_again_when_they_change(tmp_path: Path) -> None:
    recipes = Recipes(tmp_path / "site", tmp_path / "shipped")
    assert recipes.names == []
    install(tmp_path / "shipped", PAGES.replace("Pixel classification by layer", "shipped"))
    assert recipes.get("pages").title == "shipped"
    install(tmp_path / "site")
    assert recipes.get("pages").title == "Pixel classification by layer"
    install(tmp_path / "site", PAGES.replace("by layer", "by layers"))
    assert recipes.get("pages").title == "Pixel classification by layers"
    assert [recipe.name for recipe in recipes] == ["pages"]


def test_a_name_that_no_recipe_has_is_answered_with_those_there_are(tmp_path: Path) -> None:
    install(tmp_path)
    with pytest.raises(NotFound) as caught:
        Recipes(tmp_path).get("page")
    assert (caught.value.message, caught.value.hint) == ("no recipe named 'page' (did you mean pages?)", "this site has pages")
    with pytest.raises(NotFound):
        Recipes(tmp_path).get("../pages")


def test_a_recipe_that_cannot_be_used_says_why_and_keeps_no_other_from_use(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, "name: x\nrecipe: {}\n", name="broken")
    recipes = Recipes(tmp_path)
    assert recipes.get("pages").name == "pages"
    assert list(recipes.broken) == ["broken"]
    with pytest.raises(InvalidInput, match=r"the recipe broken of this site cannot be used: .*train: missing"):
        recipes.get("broken")


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ("settings: {A: {type: int, min: 9, max: 1}}", "setting 'A': found a min above its max"),
        ("settings: {A: {type: int, default: 1.5}}", "setting 'A': default: found 1.5, expected a whole number"),
        ("settings: {A: {type: int, min: low}}", "setting 'A': min: found 'low', expected a whole number"),
        ("settings: {A: {type: bool, max: 3}}", "setting 'A': max: a bool has no bounds"),
        ("settings: {A: {type: choice}}", "setting 'A': found no choices"),
        ("settings: {A: {type: text}}", "expected int or float or str"),
        ("settings: {A: {type: int, to: resources.mem}}", "resources.mem takes a memory, but this is a int"),
        ("settings: {A: {type: str, to: resources.extra}}", "resources.extra cannot be filled by requests"),
        ("settings: {A: {type: str, to: environment.setup}}", "expected params.NAME, resources.KEY or limits.KEY"),
        ("resources: {extra: {}}", "extra: expected one of time, mem"),
        ("resources: {partition: {}}", "partition: found no choices"),
        ("inputs: {a/b: {}}", "a name without /"),
        ("inputs: {.a: {}}", "a name without /"),
        ("outputs: {A: {file: ../x}}", "a file below the run's artifacts"),
        ("outputs: {A: {file: /x}}", "a file below the run's artifacts"),
        ("outputs: {A: {file: 'x{n}'}}", "expected it in both or neither"),
        ("outputs: {'A{n}': {file: 'x{n}/y{n}'}}", "expected it in the file's name"),
        ("outputs: {A: {file: x, of: B}}", "'B' is not an input"),
        ("one-of: [[B]]", "'B' is not an input"),
        ("inputs: {A: {size: 3}}", "unknown key"),
        ("limits: {inputs: 0}", "a memory size above zero"),
    ],
)
def test_a_recipe_file_says_what_is_wrong_with_it(tmp_path: Path, section: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_recipe(install(tmp_path, f"name: x\nrecipe:\n  {section}\ntrain: {{command: 'true'}}\n"))
    assert why in caught.value.message
    assert "recipe.yaml:3: recipe." in caught.value.message
