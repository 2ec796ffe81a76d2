"""What probes and browsers get from a server that has only just been started."""

import pytest
from django.db import DatabaseError, connection


def test_healthz_answers_without_asking_the_database(client):
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_asks_the_database(client, monkeypatch):
    assert client.get("/readyz").status_code == 200

    def refuse():
        raise DatabaseError

    monkeypatch.setattr(connection, "cursor", refuse)
    assert client.get("/readyz").status_code == 503


def test_probes_only_read(client):
    assert client.post("/healthz").status_code == 405
