"""The Rodan application's messages and login, as a protocol of the gateway: the entry point `v1` of `onward.gateway_protocols`."""

from __future__ import annotations

from onward.contrib.rodan.login import login as login
from onward.contrib.rodan.messages import body_of as body_of
from onward.contrib.rodan.messages import request_of as request_of

secrets = ("RODAN_PASSWORD",)
sends_addresses = False
