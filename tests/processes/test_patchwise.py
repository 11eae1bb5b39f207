"""The patchwise recipe before it learns: what it makes of a request's images, and which patches it takes. No network is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pages
import pytest
from layers import InputError, read_page, read_request
from network import choose_backend
from patches import BATCH, batches_of, sample
from PIL import Image
from score import PixelScore
from state import State

from onward.inputs.recipes.catalog import packaged_recipes, read_recipe
from onward.model.requests.request import RequestInput


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    return pages.write(tmp_path / "page", pages.draw(width=160, height=128))


def test_the_request_file_names_the_images_beside_it(inputs: dict[str, Path]) -> None:
    assert read_request(inputs["Image"].parent / "request.json") == inputs


@pytest.mark.parametrize("text", ["", "[]", '{"settings": {}}', '{"inputs": ["Image"]}'])
def test_a_file_that_is_no_request_is_called_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "request.json").write_text(text)
    with pytest.raises(InputError, match=r"request\.json cannot be read.*expected"):
        read_request(tmp_path / "request.json")


def test_a_gap_in_the_layers_numbers_stays_a_gap(inputs: dict[str, Path]) -> None:
    inputs["rgba PNG - Layer 10"] = inputs.pop("rgba PNG - Layer 1")
    page = read_page(dict(reversed(inputs.items())))
    assert [layer.model for layer in page.layers] == ["Background Model", "Model 0", "Model 2", "Model 10"]
    assert [layer.key for layer in page.layers] == ["background", "layer-0", "layer-2", "layer-10"]


def test_inputs_of_before_2020_get_models_by_the_names_of_then(tmp_path: Path) -> None:
    page = read_page(pages.write(tmp_path, pages.draw(width=160, height=128), generation=1))
    assert [layer.model for layer in page.layers] == ["Background Model", "Music Symbol Model", "Staff Lines Model", "Text Model"]


def test_the_recipe_promises_exactly_the_models_that_the_training_makes(inputs: dict[str, Path], tmp_path: Path) -> None:
    recipe = read_recipe(packaged_recipes()["patchwise"])
    old = pages.write(tmp_path / "old", pages.draw(width=160, height=128), generation=1)
    for given in (inputs, old):
        draft = recipe.fill(settings={}, inputs=[RequestInput(name=name, url="https://a.org/x.png") for name in given], hosts=["a.org"])
        promised = {name: file for name, file, required, _ in recipe.wanted(given) if required}
        assert promised == {layer.model: f"{layer.model}.hdf5" for layer in read_page(given).layers}
        assert draft.params["epochs"] == 15 and draft.resources.mail_user is None


def test_a_mask_counts_where_it_is_opaque_and_selected(inputs: dict[str, Path]) -> None:
    alpha = np.zeros((128, 160), np.uint8)
    alpha[:64], alpha[0, :80] = 255, 254
    Image.merge("RGBA", [Image.new("L", (160, 128))] * 3 + [Image.fromarray(alpha)]).save(inputs["Selected Regions"])
    page = read_page(inputs)
    assert page.believed.sum() == 64 * 160 - 80
    assert all(not layer.mask[~page.believed].any() for layer in page.layers)
    del inputs["Selected Regions"]
    assert read_page(inputs).believed.all()


def test_a_page_is_blue_first_as_old_classifiers_give_it(inputs: dict[str, Path]) -> None:
    Image.new("RGB", (160, 128), (255, 0, 51)).save(inputs["Image"])
    page = read_page(inputs)
    patches = sample(page, 1, most=100, height=64, width=64, seed=(1,))
    pixels, _, _ = patches.cut(patches.train[:1])
    assert pixels[0, 0, 0] == pytest.approx([0.8, 1.0, 0.0])


@pytest.mark.parametrize(
    ("name", "image", "said"),
    [
        ("Image", b"no image", "input 'Image' cannot be read as an image"),
        ("Background", Image.new("RGBA", (10, 10)), "input 'Background' has 10 × 10 pixels, but the page has 160 × 128"),
        ("Background", Image.new("RGB", (160, 128)), "input 'Background' has no alpha channel (RGB)"),
        ("rgba PNG - Layer 0", Image.new("RGBA", (160, 128)), "input 'rgba PNG - Layer 0' is empty"),
        ("Selected Regions", Image.new("RGBA", (160, 128)), "input 'Selected Regions' selects nothing"),
        ("Layer 1", Image.new("RGBA", (160, 128)), "input 'Layer 1' is unknown"),
    ],
)
def test_an_image_that_cannot_be_learnt_from_is_named(inputs: dict[str, Path], name: str, image: bytes | Image.Image, said: str) -> None:
    inputs[name] = path = inputs["Image"].parent / "wrong.png"
    path.write_bytes(image) if isinstance(image, bytes) else image.save(path)
    with pytest.raises(InputError) as caught:
        read_page(inputs)
    assert said in str(caught.value)


def test_a_request_without_a_page_or_without_layers_is_told_so(inputs: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="'Image' is missing"):
        read_page({"Background": inputs["Background"]})
    with pytest.raises(InputError, match="found no layer"):
        read_page({"Image": inputs["Image"]})


def test_a_training_that_cannot_begin_says_why_in_its_last_line(inputs: dict[str, Path]) -> None:
    Image.new("RGB", (160, 128)).save(inputs["Background"])
    command = [sys.executable, str(packaged_recipes()["patchwise"] / "train.py"), "--request", str(inputs["Image"].parent / "request.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("patchwise: input 'Background' has no alpha channel")


def test_an_environment_without_keras_or_a_backend_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    for there, said in (((), "Keras is not installed"), (("keras",), "has none of them: install one")):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, there=there: name if name in there else None)
        with pytest.raises(InputError, match=said):
            choose_backend()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in ("keras", "jax") else None)
    assert choose_backend() == "jax"


def test_half_of_the_patches_have_the_layer_in_them_and_a_fifth_is_held_out(inputs: dict[str, Path]) -> None:
    page = read_page(inputs)
    patches = sample(page, 1, most=200, height=8, width=8, seed=(1,))
    every = np.concatenate([patches.train, patches.held_out])
    assert (len(patches.train), len(patches.held_out), patches.batches) == (160, 40, batches_of(200))
    with_layer = patches.cut(every)[1].any(axis=(1, 2, 3)).sum()
    assert 100 <= with_layer < 200
    assert page.layers[1].mask.mean() < 0.1


def test_fewer_pixels_than_samples_give_fewer_patches(inputs: dict[str, Path]) -> None:
    alpha = np.zeros((128, 160), np.uint8)
    alpha[50, 50:55] = 255
    Image.merge("RGBA", [Image.new("L", (160, 128))] * 3 + [Image.fromarray(alpha)]).save(inputs["Selected Regions"])
    del inputs["rgba PNG - Layer 1"], inputs["rgba PNG - Layer 2"]
    inputs["rgba PNG - Layer 0"] = inputs["Background"] = inputs["Selected Regions"]
    patches = sample(read_page(inputs), 0, most=1000, height=64, width=64, seed=(1,))
    assert len(patches.train) + len(patches.held_out) == 5
    assert patches.order((1,)).shape == (BATCH, 2)
    weights = [weight.sum() for _, _, weight in patches.held_out_batches()]
    assert weights == [5.0], "what fills a batch up has no weight"


def test_a_page_smaller_than_a_patch_is_filled_up_with_what_does_not_count(inputs: dict[str, Path]) -> None:
    patches = sample(read_page(inputs), 0, most=10, height=200, width=256, seed=(1,))
    pixels, target, weight = patches.cut(patches.train)
    assert pixels.shape[1:] == (200, 256, 3) and target.shape[1:] == (200, 256, 1)
    assert not weight[:, 128:].any() and not weight[:, :, 160:].any() and weight.any()


def test_the_same_seed_takes_the_same_patches_in_the_same_order(inputs: dict[str, Path]) -> None:
    page = read_page(inputs)
    one, same, other = (sample(page, 0, most=100, height=64, width=64, seed=(seed, 0)) for seed in (1, 1, 2))
    assert np.array_equal(one.order((1, 0, 3)), same.order((1, 0, 3)))
    assert not np.array_equal(one.train, other.train)
    assert not np.array_equal(one.order((1, 0, 3)), one.order((1, 0, 4)))


def test_a_score_counts_only_what_has_weight() -> None:
    score = PixelScore()
    score.add(np.array([0.9, 0.2, 0.8, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert score.accuracy == pytest.approx(1 / 3)
    assert score.overlap == pytest.approx(1 / 3)
    assert score.loss == pytest.approx(-np.log([0.9, 0.2, 0.2]).mean())
    score.add(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    assert np.isfinite(score.loss), "one that is sure and wrong"


def test_patience_ends_only_when_neither_accuracy_nor_surety_grows(tmp_path: Path) -> None:
    class Model:
        def get_weights(self) -> list[np.ndarray]:
            return [np.zeros(1)]

    state = State(done=tmp_path, model=Model())
    for accuracy, loss, waited in ((0.9, 0.5, 0), (0.9, 0.4, 0), (0.9, 0.4, 1), (0.8, 0.1, 2), (0.95, 0.9, 0)):
        state.after_epoch(accuracy, loss)
        assert state.waited == waited
    assert (state.epoch, state.accuracy) == (5, 0.95)
    state.next_layer()
    assert (state.layer, state.epoch, state.waited, state.weights) == (1, 0, 0, [])


def test_a_page_can_be_made_without_a_layer(tmp_path: Path) -> None:
    written = pages.write(tmp_path, pages.draw(width=160, height=128), without=["staff"])
    assert "rgba PNG - Layer 1" not in written and "rgba PNG - Layer 2" in written
    assert set(json.loads((tmp_path / "request.json").read_text())["inputs"]) == set(written)
