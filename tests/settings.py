"""Settings of the tests: Deputy's own, on a server of the tests, with nothing slow and nothing sent."""

import os
import secrets
import tempfile
from pathlib import Path

os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "0123456789" * 4)
if not os.environ.get("DATABASE_URL", "").strip():
    # a name for now; tests/conftest.py starts the server there when the first test asks the database
    TEST_HOME = Path(tempfile.gettempdir()) / f"deputy-test-{secrets.token_hex(6)}"
    os.environ["DEPUTY_HOME"] = str(TEST_HOME)

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
MAIL_IN_BACKGROUND = False
WHITENOISE_AUTOREFRESH = True  # otherwise every test client looks through all static files first
LOCK_SECONDS = 20  # tests put fifty transactions before one row on a busy machine
DEPUTY_PROVIDERS = {"scripted": "tests.scripted.Scripted"}
DEPUTY_MODEL = os.environ.get("DEPUTY_MODEL", "scripted")
QUEUE_ENABLED = False  # tests drive runs themselves; tests/acceptance starts a real cluster
