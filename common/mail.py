"""E-mail: written to files that only their user reads, for trying; and sent after a page has answered."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend

log = logging.getLogger(__name__)

FOLDER, FILE = 0o700, 0o600
WAITING = 200  # mails of one process; what comes then is not sent

_sender = ThreadPoolExecutor(1, "mail")


def send_soon(message: EmailMessage) -> None:
    """Send it without letting anybody wait for it. What cannot be sent is logged, without its words."""
    from django.conf import settings

    if not getattr(settings, "MAIL_IN_BACKGROUND", True):
        _send(message)
    elif _sender._work_queue.qsize() < WAITING:
        _sender.submit(_send, message)
    else:
        log.error("a mail was not sent: too many wait")


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except Exception as error:
        log.error("a mail was not sent: %s", type(error).__name__)


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
