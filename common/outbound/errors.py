"""Why there is no answer."""


class OutboundError(Exception):
    """There is no answer. `code` is stable, `message` can be shown and names no more than the host.

    URL_INVALID, SCHEME_REFUSED, ADDRESS_REFUSED, REQUEST_INVALID (method or headers),
    TOO_MANY_REDIRECTS, TIMEOUT, CONNECTION (name, network, TLS, protocol), TOO_LARGE (packed larger
    than it unpacks; an answer that is merely long is truncated instead), DECODE (not text, or broken
    compression).

    `left`: the request, or a part of it, has gone out. `silent`: so it has, and got no answer: it may have
    been acted on.
    """

    left = False

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def silent(self) -> bool:
        return self.left and self.code in ("TIMEOUT", "CONNECTION")
