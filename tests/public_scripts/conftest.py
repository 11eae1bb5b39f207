from tests.crash.conftest import machine

__all__ = ["machine"]
