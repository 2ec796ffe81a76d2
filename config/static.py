"""Static files, served by whitenoise, without a thread for the requests that are for something else."""

from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc,unused-ignore]
    """whitenoise is synchronous, and would hold a thread around every view."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if not request.path_info.startswith(self.static_prefix):
            return self.get_response(request)
        return self._look(request) if iscoroutinefunction(self) else super().__call__(request)

    async def _look(self, request: Any) -> Any:
        found = await sync_to_async(self.found)(request)
        return found or await self.get_response(request)

    def found(self, request: Any) -> Any:
        """The file's response; None where there is no such file."""
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        return self.serve(file, request) if file is not None else None
