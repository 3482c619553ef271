"""What a request or a model version can fail with: one code for both protocols, and a message for the user. Pure."""

from __future__ import annotations

from enum import Enum

LONGEST_MESSAGE = 1024


class Code(Enum):
    """A status of gRPC by number, with the status of HTTP that answers the same failure."""

    OK = (0, 200)
    CANCELLED = (1, 499)
    UNKNOWN = (2, 500)
    INVALID_ARGUMENT = (3, 400)
    DEADLINE_EXCEEDED = (4, 504)
    NOT_FOUND = (5, 404)
    ALREADY_EXISTS = (6, 409)
    PERMISSION_DENIED = (7, 403)
    RESOURCE_EXHAUSTED = (8, 503)
    FAILED_PRECONDITION = (9, 400)
    ABORTED = (10, 409)
    OUT_OF_RANGE = (11, 400)
    UNIMPLEMENTED = (12, 501)
    INTERNAL = (13, 500)
    UNAVAILABLE = (14, 503)
    DATA_LOSS = (15, 500)
    UNAUTHENTICATED = (16, 401)

    def __init__(self, number: int, http_status: int) -> None:
        self.number = number
        self.http_status = http_status


class ServingError(Exception):
    """A failure that a client sees, or that the status of a model version shows."""

    def __init__(self, code: Code, message: str, http_status: int = 0) -> None:
        self.code = code
        self.message = shorten(message)
        self.http_status = http_status or code.http_status
        """Of REST, where it says more than the code: 405, 411, 413, 415."""
        super().__init__(self.message)


def invalid(message: str) -> ServingError:
    """Return the error for a request that the model, or the API, cannot accept."""
    return ServingError(Code.INVALID_ARGUMENT, message)


def shorten(text: str) -> str:
    """Return `text` at a length that fits a log line; TensorFlow's messages hold whole graphs."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} …"
