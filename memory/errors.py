"""What memory refuses, and why."""


class MemoryRefused(ValueError):
    """The request makes no sense; `code` is stable, the message is for people and agents."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
