"""Config and summary of a run, for scripts that know them from W&B: `import onward as wandb`. Loaded when they are used."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from onward.sdk.stderr import say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tell = Callable[[dict[str, object]], None]
    Values = MutableMapping[str, object]
else:
    Values = MutableMapping


class Config(Values):
    """Params of the run, by item or attribute: `config.lr`, `config["lr"] = 0.1`, `config.update(vars(args))`."""

    def __init__(self, values: Mapping[str, object], tell: Tell) -> None:
        object.__setattr__(self, "_values", dict(values))
        object.__setattr__(self, "_tell", tell)

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __setitem__(self, key: str, value: object) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        """Values that were recorded stay recorded."""
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, key: str) -> object:
        if key in ("_values", "_tell"):  # of one that is being copied
            raise AttributeError(key)
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError(f"config has no {key!r}; it has {', '.join(map(str, self._values)) or 'nothing yet'}") from None

    def __setattr__(self, key: str, value: object) -> None:
        self.update({key: value})

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[object, ...]:
        """A copy, also in another process, is one that tells nobody."""
        return Config, (dict(self._values), _nobody)

    def update(self, other: object = (), /, allow_val_change: bool | None = None, **more: object) -> None:  # type: ignore[override]
        """From a mapping, pairs or argparse's namespace. A change is allowed: a resumed training may have other params."""
        new = {**as_mapping(other), **more}
        self._values.update(new)
        if new:
            self._tell({"kind": "params", "params": flat_values(new)})

    def setdefaults(self, other: object) -> None:
        self.update({key: value for key, value in as_mapping(other).items() if key not in self._values})

    def as_dict(self) -> dict[str, object]:
        return dict(self._values)

    _values: dict[str, object]
    _tell: Tell


class Summary(Values):
    """The last value of every metric, and what the script sets, stored with the run as tags `summary.KEY`."""

    def __init__(self, last: Mapping[str, object], tell: Tell) -> None:
        object.__setattr__(self, "_last", last)
        object.__setattr__(self, "_own", {})
        object.__setattr__(self, "_tell", tell)

    def __getitem__(self, key: str) -> object:
        return self._own[key] if key in self._own else self._last[key]

    def __setitem__(self, key: str, value: object) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        del self._own[key]
        self._tell({"kind": "untag", "tags": [f"summary.{key}"]})

    def __iter__(self) -> Iterator[str]:
        return iter({**self._last, **self._own})

    def __len__(self) -> int:
        return len({**self._last, **self._own})

    def __getattr__(self, key: str) -> object:
        if key in ("_last", "_own", "_tell"):  # of one that is being copied
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"summary has no {key!r}") from None

    def __setattr__(self, key: str, value: object) -> None:
        self.update({key: value})

    def __repr__(self) -> str:
        return repr(dict(self))

    def update(self, other: object = (), /, **more: object) -> None:
        new = {**as_mapping(other), **more}
        self._own.update(new)
        if new:
            self._tell({"kind": "tags", "tags": {f"summary.{key}": value for key, value in flat_values(new).items()}})

    _last: Mapping[str, object]
    _own: dict[str, object]
    _tell: Tell


def early_config(held: dict[str, object]) -> Config:
    """A config before there is a run: init() takes what was set."""
    config = Config({}, _nobody)
    object.__setattr__(config, "_values", held)
    return config


def _nobody(record: dict[str, object]) -> None: ...


def as_mapping(given: object) -> dict[str, object]:
    """A mapping, pairs, or an object with attributes, such as argparse's namespace. Anything else is ignored with a warning."""
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items()}
    if hasattr(given, "__dict__"):
        return dict(vars(given))
    try:
        return {str(key): value for key, value in given} if given else {}  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        say_once(f"config={given!r} is ignored: expected a mapping, pairs or a namespace")
        return {}


def flat_values(values: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Plain values by their names; nested ones as `optimizer.lr`."""
    found: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found.update(flat_values(value, f"{above}{key}."))
        else:
            found[f"{above}{key}"] = value if isinstance(value, (str, int, float, bool)) else str(value)
    return found
