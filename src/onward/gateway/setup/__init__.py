"""Setting a gateway up (`onward gateway init`): what belongs into which file, and the commands for the broker"""

from __future__ import annotations
