"""What a request of the second protocol may hold: its shape. What its settings and inputs may be, its recipe says."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import Section
from onward.inputs.problems import problems_of
from onward.inputs.values import CountOrZero, Name, Number, Scalar, custom_error, word

REQUEST_ID = r"[A-Za-z0-9._:-]{1,128}"
_MOST_SAID = 20
_LATEST = 253_402_300_800  # the year 10000

RequestId = Annotated[str, word(REQUEST_ID, "1 to 128 letters, digits, '.', '_', ':' or '-'")]
Url = Annotated[str, word(r"https?://[^\s\x00-\x1f]{1,4000}", "an address such as https://files.lab.org/page.png")]
Sha256 = Annotated[str, word(r"[0-9a-f]{64}", "64 hexadecimal digits, lower case")]
Bytes = Annotated[int, Field(ge=0, le=1 << 53, strict=True)]
Label = Annotated[str, word(r"[^\x00-\x1f\x7f]{1,250}", "1 to 250 characters of one line")]
SenderName = Annotated[str, word(r"[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,99}", "a name of at most 100 characters")]


class RequestInputIn(Section):
    url: Url = Field(description="Where to fetch it.")
    sha256: Sha256 | None = Field(default=None, description="Its SHA-256; a different file is refused.")
    size: Bytes | None = Field(default=None, description="Its size in bytes; a file of another size is refused.")


class RequestIn(Section):
    id: RequestId = Field(description="An id that you choose. Sent again with the same body, it is the same request.")
    recipe: Name = Field(description="The recipe.")
    inputs: dict[Label, RequestInputIn] = Field(default_factory=dict, description="Input files, by the recipe's names.")
    settings: dict[Label, Scalar] = Field(default_factory=dict, description="Settings, by the recipe's names.")
    resources: dict[Label, Scalar] = Field(default_factory=dict, description="Resources that the recipe lets a request choose.")
    deadline: Number | None = Field(default=None, description="Unix seconds. If it is not over by then, it is cancelled and gets a reply.")
    priority: CountOrZero = Field(default=0, description="0 to 9; higher runs first.")
    sender: SenderName | None = Field(default=None, description="Who sends it, if the broker does not authenticate a user.")

    @field_validator("inputs", mode="before")
    @classmethod
    def _addresses_alone(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: {"url": one} if isinstance(one, str) else one for name, one in value.items()}

    @field_validator("priority", mode="after")
    @classmethod
    def _nine_at_most(cls, value: int) -> int:
        if value > 9:
            raise custom_error(f"found {value}, expected 0 to 9")
        return value

    @field_validator("deadline", mode="after")
    @classmethod
    def _a_time(cls, value: int | float | None) -> int | float | None:
        if value is not None and not 0 < value < _LATEST:
            raise custom_error(f"found {value!r}, expected unix seconds such as 1800000000")
        return value


def read_request(body: dict[str, Any]) -> RequestIn:
    """InvalidInput with everything that is wrong with it, a line each."""
    try:
        return RequestIn.model_validate(body)
    except ValidationError as error:
        problems = [sentence for _, sentence in problems_of(error, RequestIn, lambda keys: ".".join(keys)[:300] or "the message")]
        more = [f"and {len(problems) - _MOST_SAID} more"] if len(problems) > _MOST_SAID else []
        hint = "`onward gateway schema` prints the schema of a request"
        raise InvalidInput("\n".join([*problems[:_MOST_SAID], *more]), hint=hint) from error
