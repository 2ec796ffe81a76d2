"""Signing in: django-allauth does it; what is Deputy's own about it stands here."""
