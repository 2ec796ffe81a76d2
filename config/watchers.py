"""Who may see how the installation fares: metrics, and the figures behind a probe's answer."""

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest


def may_watch(request: HttpRequest) -> bool:
    """With METRICS_TOKEN as bearer token, from a network of METRICS_ALLOW, or signed in as superuser."""
    return _has_token(request) or _is_near(request) or _is_superuser(request)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
    wanted = settings.METRICS_TOKEN
    if not wanted or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(secret.strip().encode(), wanted.encode())


def _is_near(request: HttpRequest) -> bool:
    """By the address of the connection itself, never by a header that anybody may write."""
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_ALLOW)


def _is_superuser(request: HttpRequest) -> bool:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    try:
        return request.user.is_active and request.user.is_superuser
    except DatabaseError:  # it is away: nobody is signed in
        return False
