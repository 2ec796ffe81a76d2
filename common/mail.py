"""E-mail written to files, for trying Deputy: only its user reads them."""

import os
from pathlib import Path
from typing import Any

from django.core.mail.backends.filebased import EmailBackend

FOLDER, FILE = 0o700, 0o600


class PrivateFiles(EmailBackend):
    """Django's, with a folder and files of its user alone."""

    def __init__(self, *, file_path: Any = None, **kwargs: Any) -> None:
        from django.conf import settings

        folder = Path(file_path or settings.EMAIL_FILE_PATH)
        if not folder.exists():
            folder.mkdir(FOLDER, parents=True, exist_ok=True)
        elif folder.is_dir() and folder.stat().st_uid == os.geteuid():
            folder.chmod(FOLDER)
        super().__init__(file_path=file_path, **kwargs)

    def open(self) -> bool:
        if self.stream is None:
            self.stream = open(self._get_filename(), "ab", opener=_private)  # noqa: SIM115 - Django closes it
            return True
        return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE)
