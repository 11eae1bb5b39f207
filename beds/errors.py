"""What a bed raises."""


class BedError(Exception):
    """Something kept a bed from doing what was asked; `hint` says what to do next."""

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(f"{what}\n  -> {hint}" if hint else what)
        self.what = what
        self.hint = hint
