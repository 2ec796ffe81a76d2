"""The text of a PDF, in a process with little memory and time: `python -m runs.web.pdf_text < file`."""

import io
import resource
import sys

MEMORY = 768 * 1024 * 1024  # bytes
SECONDS = 15
MOST_PAGES = 300
MOST_CHARACTERS = 200_000


def main() -> None:
    """Writes the text to standard output; exit status 1 where there is none to be read."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    left = MOST_CHARACTERS
    for page in reader.pages[:MOST_PAGES]:
        text = page.extract_text()[:left]
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n\n")
        left -= len(text)
        if left <= 0:
            return


if __name__ == "__main__":
    main()
