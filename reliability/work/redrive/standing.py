"""Where the letters of a redrive are: counted from its members and their jobs."""

from django.db.models import Count, F

from reliability.models import Job, Redrive, RedriveMember
from reliability.work.redrive.pace import Standing

Outcome = RedriveMember.Outcome


def standing(redrive: Redrive) -> Standing:
    """Count where the letters are, and the results since a person last let it go on."""
    many, retrying = counts(redrive), _retrying(redrive)
    failing = many.get(Outcome.FAILED, 0) + retrying
    return Standing(
        pending=many.get(Outcome.PENDING, 0),
        running=many.get(Outcome.RUNNING, 0),
        retrying=retrying,
        succeeded=max(0, many.get(Outcome.SUCCEEDED, 0) - redrive.judged_succeeded),
        failing=max(0, failing - redrive.judged_failed),
    )


def counts(redrive: Redrive) -> dict[str, int]:
    """Count the letters by outcome."""
    rows = redrive.members.order_by().values_list("outcome").annotate(Count("pk"))
    return dict(rows)


def _retrying(redrive: Redrive) -> int:
    """Count jobs given back after a failed start of this round: neither crash nor release."""
    on_their_way = redrive.members.filter(outcome=Outcome.RUNNING).values("job_id")
    lost = F("crashes") - F("round_crashes") + F("releases") - F("round_releases")
    jobs = Job.objects.filter(pk__in=on_their_way, state=Job.State.READY)
    return jobs.filter(starts__gt=F("round_starts") + lost).count()
