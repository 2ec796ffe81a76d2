"""`/cells/where/`: which cell a request is for, as a proxy in front of the cells asks (deploy/cells/)."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from groups import bearer, cells

HEADER = "X-Deputy-Cell"
SCHEMES = ("token", "bearer")


@never_cache
def where(request: HttpRequest) -> HttpResponse:
    """204 with the address of the cell in X-Deputy-Cell: that of the token or of the organization that the
    request names, and this one for everything else. It opens nothing: the cell itself asks who it is.
    """
    address = elsewhere(request) or cells.own_address()
    if address is None:
        return HttpResponse("This installation is no cell (manage.py cell).", status=404)
    return HttpResponse(status=204, headers={HEADER: address})


def elsewhere(request: HttpRequest) -> str | None:
    """Another cell that the request is for."""
    scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() in SCHEMES:
        token = secret.strip()
        return None if bearer.live(token) else cells.address_of_token(token)
    slug = request.headers.get("X-Organization", "")
    return cells.address_of_slug(slug) if slug else None
