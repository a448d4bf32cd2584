"""Routes of the API, below `/api/v1/`."""

from django.urls import path

from reliability.api import jobs

urlpatterns = [
    path("jobs", jobs.enqueue_job, name="api-jobs"),
    path("jobs/<uuid:public_id>", jobs.show_job, name="api-job"),
    path("jobs/<uuid:public_id>/complete", jobs.complete_job, name="api-complete"),
]
