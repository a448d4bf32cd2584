"""Routes of this deployment: the webhook door, the health answer and the console."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
