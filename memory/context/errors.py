"""What can go wrong with a page, in words an agent can act on."""


class ContextError(Exception):
    """An operation on the working memory that was refused; nothing was changed.

    `code` is stable: PERMISSION_DENIED, not_found or invalid_operation.
    """

    code = "invalid_operation"


class NotFound(ContextError):
    code = "not_found"


class PermissionDenied(ContextError):
    code = "PERMISSION_DENIED"


class InvalidOperation(ContextError):
    """The tree would not be a tree any more, or a text cannot be stored."""


def page_not_found(index: str) -> NotFound:
    return NotFound(f"page {index} not found")


def segment_not_found(segment_id: str) -> NotFound:
    return NotFound(f"segment {segment_id} not found")
