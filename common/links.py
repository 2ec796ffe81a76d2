"""Addresses of Deputy's pages for those who read them elsewhere, as in a mail."""

from django.conf import settings
from django.urls import reverse


def link(name: str, *arguments: str) -> str:
    """The whole address of the page that `urls` knows by this name."""
    return f"{settings.PUBLIC_URL}{reverse(name, args=arguments)}"
