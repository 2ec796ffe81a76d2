"""Static files, served by whitenoise, without a thread for the requests that are for something else.

Text goes out compressed, to whoever takes gzip: each file is compressed once a process. Pages themselves are
not: they hold what somebody else may have chosen beside what is secret (BREACH).
"""

import gzip
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

TEXTS = ("text/", "application/javascript", "application/json", "image/svg+xml")
LEAST = 500  # bytes; less is not worth it
MOST_KEPT = 300  # files

Version = tuple[str, str]  # a file's address, and when it was changed


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc,unused-ignore]
    """whitenoise is synchronous, and would hold a thread around every view."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        self.compressed: dict[Version, bytes] = {}
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if not request.path_info.startswith(self.static_prefix):
            return self.get_response(request)
        return self._look(request) if iscoroutinefunction(self) else self._at_once(request)

    def _at_once(self, request: Any) -> Any:
        return self.found(request) or self.get_response(request)

    async def _look(self, request: Any) -> Any:
        found = await sync_to_async(self.found)(request)
        return found or await self.get_response(request)

    def found(self, request: Any) -> Any:
        """The file's response; None where there is no such file."""
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        return self._smaller(request, self.serve(file, request)) if file is not None else None

    def _smaller(self, request: Any, answer: Any) -> Any:
        """The answer compressed, where it is a whole text that is not so already, for who takes it."""
        kind, length = answer.get("Content-Type", ""), int(answer.get("Content-Length") or 0)
        if not kind.startswith(TEXTS) or answer.status_code != 200 or answer.has_header("Content-Encoding"):
            return answer
        patch_vary_headers(answer, ("Accept-Encoding",))
        if (
            length < LEAST
            or request.method != "GET"
            or "gzip" not in request.META.get("HTTP_ACCEPT_ENCODING", "")
        ):
            return answer
        headers = {name: value for name, value in answer.items() if name != "Content-Length"}
        version = (request.path_info, answer.get("Last-Modified", ""))
        smaller = HttpResponse(self._compressed(version, answer), headers=headers)
        smaller["Content-Encoding"], smaller["Content-Length"] = "gzip", len(smaller.content)
        if etag := smaller.get("ETag"):
            smaller["ETag"] = f"W/{etag.removeprefix('W/')}"  # the same text in another form
        return smaller

    def _compressed(self, version: Version, answer: Any) -> bytes:
        if version not in self.compressed:
            while len(self.compressed) >= MOST_KEPT:
                self.compressed.pop(next(iter(self.compressed)))
            self.compressed[version] = gzip.compress(b"".join(answer.streaming_content), 6, mtime=0)
        answer.file_to_stream.close()  # not the answer: that would tell Django that the request is over
        return self.compressed[version]
