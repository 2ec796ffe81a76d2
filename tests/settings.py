"""Settings of the tests: Deputy's own, on a server of the tests, with nothing slow and nothing sent."""

import os

from launch import place, postgres

os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "0123456789" * 4)
if not os.environ.get("DATABASE_URL", "").strip():
    # a folder for now; tests/conftest.py starts the server when the first test asks the database
    TEST_HOME = postgres.temporary_home()
    os.environ["DEPUTY_HOME"] = str(TEST_HOME)
    place.make(TEST_HOME)

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
