"""A Django project in one module: settings, and URL patterns that tests choose."""

from __future__ import annotations

from typing import Any

import django
from django.conf import settings

__all__ = ["urlpatterns"]

if not settings.configured:
    settings.configure(
        ROOT_URLCONF="django_rig",
        MIDDLEWARE=["holdall.web.django.ErrorMiddleware"],
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="of the tests",
        LOGGING_CONFIG=None,
    )
    django.setup()

urlpatterns: list[Any] = []
