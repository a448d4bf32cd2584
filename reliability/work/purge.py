"""The end of a job that was done long ago: everything goes but its key."""

from datetime import datetime

from reliability import sql
from reliability.work.lease import JobId


def purge_done(before: datetime, *, limit: int) -> int:
    """Empty up to ``limit`` jobs done before then, in place; return how many.

    Payload, headers, result, attempts, closed letters and the job go. The key stays under the same
    constraint, so a repeat is still a duplicate and is told when it was done.
    """
    return len(sql.rows_planned_anew("purge_done", JobId, before=before, limit=limit))
