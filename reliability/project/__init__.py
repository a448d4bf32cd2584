"""This deployment: settings, addresses, the Celery app, the web entry point."""
