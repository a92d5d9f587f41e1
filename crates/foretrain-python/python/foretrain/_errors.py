"""What is raised where there is no answer."""

from __future__ import annotations


class ForetrainError(ValueError):
    """Input that cannot be used. Its text is what the command says, with the ways on.

    `message` has no hints, `hints` are the ways on, `path` the file and `place` the line, key or
    option that is at fault, where there is one.
    """

    def __init__(
        self,
        message: str,
        hints: list[str] | None = None,
        path: str | None = None,
        place: str | None = None,
    ) -> None:
        self.message = message
        self.hints = list(hints or [])
        self.path = path
        self.place = place
        super().__init__("\n".join([message, *(f"hint: {hint}" for hint in self.hints)]))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.message, self.hints, self.path, self.place)


class UsageError(ForetrainError, TypeError):
    """Keywords that a verb does not take, or values that are none of theirs."""
