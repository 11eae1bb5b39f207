"""Why a leg was asked to stop."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """The values are in journals on disk: they never change."""

    DEADLINE = "deadline"  # the job's time limit is near
    WARNING = "warning"  # the scheduler warned that the job will end
    REQUEST = "request"  # somebody asked for it
    SIGNAL = "signal"  # the scheduler is ending the job now
    DELETED = "deleted"  # the job was deleted at the scheduler
    GIVEN_UP = "given_up"  # the scheduler lost contact with the host and started the job elsewhere
    FOLDER_GONE = "folder_gone"  # the run's folder was deleted
    STORAGE = "storage"  # in journals of early versions only: checkpoints could not be stored any more

    @classmethod
    def read(cls, text: str) -> StopReason | None:
        """From a journal. None: written by a newer version."""
        return cls(text) if text in cls.__members__.values() else None


def stop_reason_text(reason: StopReason) -> str:
    match reason:
        case StopReason.DEADLINE:
            return "its time limit is near"
        case StopReason.WARNING:
            return "the scheduler warned that its job will end"
        case StopReason.REQUEST:
            return "a user asked for it"
        case StopReason.SIGNAL:
            return "the scheduler is ending its job"
        case StopReason.DELETED:
            return "its job was deleted"
        case StopReason.GIVEN_UP:
            return "the scheduler lost contact with its host and started the job elsewhere"
        case StopReason.FOLDER_GONE:
            return "the run's folder was deleted"
        case StopReason.STORAGE:
            return "its checkpoints can no longer be stored"
