"""Every page is looked at on a desk and on a phone, light and dark; nothing complains."""

import pytest

from reliability.models import DeadLetter
from tests.e2e.visits import SHOTS, Visit

PAGES = {
    "overview": "/",
    "dead_letters": "/dead-letters/",
    "letter": "/dead-letters/{letter}/",
    "trace": "/trace/?find={key}",
    "trace_empty": "/trace/?find=evt_nowhere",
    "jobs": "/jobs/",
    "deliveries": "/deliveries/",
    "alerts": "/alerts/",
    "silences": "/alerts/silences/",
    "audit": "/audit/",
    "you": "/you/",
}


@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_fits_its_screen_and_nothing_complains(visit: Visit, width: int) -> None:
    newest = DeadLetter.objects.select_related("job__key").latest("buried_at")
    visit.page.set_viewport_size({"width": width, "height": 900})
    SHOTS.mkdir(exist_ok=True)
    for name, path in PAGES.items():
        page = visit.open(path.format(letter=newest.public_id, key=newest.job.key.key))
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=SHOTS / f"{name}.{width}.{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
