"""Registers the tools of the acceptance tests in every process of the cluster under test."""

from django.apps import AppConfig


class Acceptance(AppConfig):
    name = "tests.acceptance"
    label = "acceptance"

    def ready(self) -> None:
        from tests.acceptance import tools  # noqa: F401
