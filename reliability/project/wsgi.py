"""The web server's way in."""

import os

from django.core.wsgi import get_wsgi_application

from reliability.checks import refuse_to_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")

application = get_wsgi_application()
refuse_to_start()
