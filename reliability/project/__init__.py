"""This deployment: settings, addresses, the Celery app, the web entry point."""

from reliability.project.celery import app as celery_app

__all__ = ["celery_app"]
