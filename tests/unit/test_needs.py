"""What a machine lacks skips a test on a desk, and fails it in CI: there a skip would hide that nothing was tested."""

from __future__ import annotations

import pytest

from tests.needs import missing


def test_what_is_missing_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no teapot"):
        missing("no teapot")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no teapot; CI must have it"):
        missing("no teapot")
