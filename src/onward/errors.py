"""Every error Onward raises on purpose.

    OnwardError                    exit code 1
    ├── InvalidInput               2   a params file, flag or setting that cannot be used
    │   ├── TooLarge               2   a file larger than allowed
    │   └── NoPython               2   the Python of an ssh profile does not exist or is too old
    ├── NotFound                   3   no such run, cluster, checkpoint
    ├── NotAllowed                 4   another user's run
    │   └── LoginRefused           4   an ssh host that requires a password, a code, or a confirmed key
    ├── Conflict                   5   the run is not in a state that allows this
    │   ├── AlreadyClaimed         5   another job has taken this leg
    │   ├── CopiedFolder           5   a copy of a run's folder: the run lives in another
    │   └── TakenOver              5   a later leg has begun: this one publishes nothing more
    ├── SchedulerError             1
    │   ├── SchedulerUnavailable   6   transient: no answer, so the state is unknown
    │   │   └── HostUnreachable    6   transient: no connection to the host of an ssh profile, or it broke
    │   ├── SubmitUnclear          6   transient: the job may or may not have been accepted
    │   ├── SubmitRefused          1   the scheduler said no
    │   │   └── SubmitLimitReached 1   transient: as many jobs are submitted as the site allows
    │   └── NotOffered             1   this scheduler's adapter does not support the request
    ├── StorageError               1
    │   ├── StorageFull            1   transient: disk or quota is full
    │   ├── StorageUnavailable     6   transient: the tracker's database does not answer
    │   └── CheckpointDamaged      1   a checkpoint's files do not match its manifest
    ├── PreparationFailed          1   a module, conda, venv or setup line before the training failed
    ├── InputsFailed               6   transient: a request's file could not be fetched
    │   └── InputRefused           1   permanent: missing, not allowed, too large, or not as announced
    │       └── TokenRefused       1   the application refuses the token with which a file is fetched
    ├── NotDelivered               6   transient: a channel of alerts did not answer, or was too busy
    │   └── DeliveryRefused        1   permanent: it refuses this notice
    ├── TooMany                    1   transient: more at once, or faster, than is allowed
    └── RunFailed                  7   the run that was awaited did not finish
        └── GateFailed             7   a benchmark failed a condition

An error says what happened, to which thing, and (in `hint`) what to do next. Its class says whether trying again
can help (`transient`) and which code the command line ends with (`exit_code`).
"""

from __future__ import annotations


class OnwardError(Exception):
    transient = False
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(OnwardError):
    exit_code = 2


class TooLarge(InvalidInput):
    pass


class NoPython(InvalidInput):
    pass


class NotFound(OnwardError):
    exit_code = 3


class NotAllowed(OnwardError):
    exit_code = 4


class LoginRefused(NotAllowed):
    pass


class Conflict(OnwardError):
    exit_code = 5


class AlreadyClaimed(Conflict):
    pass


class CopiedFolder(Conflict):
    pass


class TakenOver(Conflict):
    pass


class SchedulerError(OnwardError):
    pass


class SchedulerUnavailable(SchedulerError):
    transient = True
    exit_code = 6


class HostUnreachable(SchedulerUnavailable):
    pass


class SubmitUnclear(SchedulerError):
    transient = True
    exit_code = 6


class SubmitRefused(SchedulerError):
    pass


class SubmitLimitReached(SubmitRefused):
    transient = True


class NotOffered(SchedulerError):
    pass


class StorageError(OnwardError):
    pass


class StorageFull(StorageError):
    transient = True

    def __init__(self, message: str, *, hint: str = "", need: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.need = need  # bytes that it has no room for


class StorageUnavailable(StorageError):
    transient = True
    exit_code = 6


class CheckpointDamaged(StorageError):
    pass


class PreparationFailed(OnwardError):
    pass


class InputsFailed(OnwardError):
    transient = True
    exit_code = 6


class InputRefused(InputsFailed):
    transient = False
    exit_code = 1


class TokenRefused(InputRefused):
    pass


class NotDelivered(OnwardError):
    transient = True
    exit_code = 6


class DeliveryRefused(NotDelivered):
    transient = False
    exit_code = 1


class TooMany(OnwardError):
    transient = True


class RunFailed(OnwardError):
    exit_code = 7


class GateFailed(RunFailed):
    pass
