"""Ways to keep Deputy busy with files."""

import subprocess
import threading

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.web import files


def pdf():
    return SimpleUploadedFile("a.pdf", b"%PDF-1.4")


@pytest.fixture
def reading(monkeypatch):
    """Two people whose PDFs take long to be read; what was asked for is counted."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(name, content, seconds):
        begun.release()
        go_on.wait(10)
        return "text"

    monkeypatch.setattr(files, "_of_pdf", slow)
    threads = [threading.Thread(target=files.as_context, args=([pdf()], whose)) for whose in (1, 2)]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=10)
    yield
    go_on.set()
    for thread in threads:
        thread.join()


def test_few_pdfs_are_read_at_once_so_that_they_hold_few_of_the_processs_threads(reading):
    with pytest.raises(files.UnreadableFile, match="just now"):
        files.as_context([pdf()], 3)
    text = SimpleUploadedFile("a.txt", b"What fits is read.")
    assert "What fits is read." in files.as_context([text], 3)


def test_a_person_has_one_read_at_a_time():
    with files._turn(1):
        with pytest.raises(files.UnreadableFile), files._turn(1):
            pass
        with files._turn(2):
            pass
    with files._turn(1):
        pass


def test_all_pdfs_of_a_request_have_one_time_together(monkeypatch):
    given = []

    def late(*args, **kwargs):
        given.append(kwargs["timeout"])
        raise subprocess.TimeoutExpired("read", kwargs["timeout"])

    monkeypatch.setattr(files.subprocess, "run", late)
    monkeypatch.setattr(files, "PDF_SECONDS", 0)
    with pytest.raises(files.UnreadableFile, match="too long"):
        files.as_context([pdf(), pdf()], 1)
    assert given == [0.1]
