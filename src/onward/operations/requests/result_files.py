"""The files that a finished run of a request answers with: by the names that its recipe declares, hashed."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterator, Sequence

from onward.errors import NotFound
from onward.inputs.recipes.definition import Recipe, RecipeOutput
from onward.inputs.recipes.numbered_names import NumberedName
from onward.model.requests.outcome import OutcomeFile
from onward.rundir.files.artifacts import ArtifactFiles
from onward.rundir.layout import RunDir

_CHUNK = 1 << 20
_TYPES = {".h5": "application/x-hdf5", ".hdf5": "application/x-hdf5", ".keras": "application/zip", ".npz": "application/zip"}


def collect(dir: RunDir, recipe: Recipe, inputs: Sequence[str]) -> list[OutcomeFile]:
    """For a request with inputs of these names. NotFound names all that must be there and is not."""
    files = ArtifactFiles(dir.artifacts, root=dir.root)
    found, missing = [], []
    for name, path, required, output in recipe.wanted(inputs):
        each = list(_numbered(files, name, path)) if NumberedName(text=path).numbered else [(name, path)]
        results = [result for known, at in each if (result := _result(dir, files, known, at, output))]
        found += results
        if required and not results:
            missing.append(f"{name!r} ({path})")
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise NotFound(
            f"{', '.join(missing)} {are} not among its artifacts", hint=f"the recipe {recipe.name} promises it; see the run's log"
        )
    return found


def _numbered(files: ArtifactFiles, name: str, path: str) -> Iterator[tuple[str, str]]:
    """Of a family: those that there are, by number."""
    folder, _, _ = path.rpartition("/")
    pattern = NumberedName(text=path, last=999)
    numbers = [number for file in files.list(folder) if not file.is_dir and (number := pattern.match(file.path)) is not None]
    return ((NumberedName.fill(name, number), pattern.at(number)) for number in sorted(numbers))


def _result(dir: RunDir, files: ArtifactFiles, name: str, path: str, output: RecipeOutput) -> OutcomeFile | None:
    try:
        file, _ = files.open(path)
    except NotFound:
        return None
    digest, size = hashlib.sha256(), 0
    with file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    kind = output.media_type or _TYPES.get(path[path.rfind(".") :]) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return OutcomeFile(name=name, path=str(dir.artifacts / path), size=size, sha256=digest.hexdigest(), media_type=kind)
