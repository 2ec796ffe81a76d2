"""Django's own list of what a deployment must not forget, under the settings of one."""

import os
import subprocess
import sys

from launch.home import PROJECT

PRODUCTION = {
    "DATABASE_URL": "postgresql://deputy:secret@db.example.com:5432/deputy",
    "SECRET_KEY": "J2m-8vQx_t5RkZ0cYw7NfL3pHs9aUe1bGd6iXo4TnVq_CyMzEr",
    "BEHIND_HTTPS": "yes",
    "ALLOWED_HOSTS": "deputy.example.com",
    "DJANGO_SETTINGS_MODULE": "config.settings",
}


def test_check_deploy_finds_nothing(tmp_path):
    environment = {"PATH": os.environ["PATH"], "DEPUTY_HOME": str(tmp_path), **PRODUCTION}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
