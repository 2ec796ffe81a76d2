"""Settings of a real cluster under test: the tests' own, with the queue, mail that is sent, and tools
whose effects the test counts."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

QUEUE_ENABLED = True
LOCK_SECONDS = 2
DEPUTY_WITNESS = os.environ.get("DEPUTY_WITNESS", "")
INSTALLED_APPS = [*globals()["INSTALLED_APPS"], "tests.acceptance.apps.Acceptance"]
LOGGING = globals()["LOGGING"] | {"root": {"handlers": ["stderr"], "level": "INFO"}}
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST, _, _port = os.environ.get("DEPUTY_SMTP", "127.0.0.1:1").partition(":")
EMAIL_PORT = int(_port)
EMAIL_TIMEOUT = 10
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
