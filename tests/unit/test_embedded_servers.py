"""The embedded servers start, stop and clean up after accidents."""

import pytest
from django.db import connection


@pytest.mark.django_db
def test_the_application_role_is_no_superuser() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('is_superuser'), current_user")
        assert cursor.fetchone() == ("off", "reliability")
