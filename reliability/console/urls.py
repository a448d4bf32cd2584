"""Routes of the console; each view says in its file who may open it."""

from django.urls import URLPattern, URLResolver, path

from reliability.console.views import (
    alerts,
    audit,
    dead_letter,
    dead_letters,
    deliveries,
    discrepancies,
    health,
    jobs,
    members,
    overview,
    reports,
    runs,
    trace,
)

app_name = "console"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.index, name="overview"),
    path("deliveries/", deliveries.index, name="deliveries"),
    path("deliveries/refused/", deliveries.refused, name="refused"),
    path("runs/", runs.index, name="runs"),
    path("jobs/", jobs.index, name="jobs"),
    path("dead-letters/", dead_letters.index, name="dead_letters"),
    path(
        "dead-letters/requeue/preview/", dead_letters.preview_requeue, name="preview_requeue"
    ),
    path("dead-letters/requeue/", dead_letters.requeue, name="requeue_letters"),
    path(
        "dead-letters/discard/preview/", dead_letters.preview_discard, name="preview_discard"
    ),
    path("dead-letters/discard/", dead_letters.discard, name="discard_letters"),
    path("dead-letters/<uuid:public_id>/", dead_letter.detail, name="dead_letter"),
    path("dead-letters/<uuid:public_id>/requeue/", dead_letter.requeue, name="requeue"),
    path("dead-letters/<uuid:public_id>/undo/", dead_letter.undo, name="undo"),
    path("dead-letters/<uuid:public_id>/discard/", dead_letter.discard, name="discard"),
    path("dead-letters/<uuid:public_id>/resolve/", dead_letter.resolve, name="resolve"),
    path("dead-letters/<uuid:public_id>/restore/", dead_letter.restore, name="restore"),
    path("dead-letters/<uuid:public_id>/reveal/", dead_letter.reveal, name="reveal"),
    path("reports/", reports.index, name="reports"),
    path("reports/upload/", reports.upload, name="upload"),
    path("reports/<uuid:public_id>/", reports.detail, name="report"),
    path("reports/<uuid:public_id>/changes/", reports.what_changed, name="report_changes"),
    path("reports/<uuid:public_id>/csv/", reports.as_csv, name="report_csv"),
    path("reports/<uuid:public_id>/json/", reports.as_json, name="report_json"),
    path("reports/<uuid:public_id>/compare/", reports.compare_again, name="compare_again"),
    path("reports/<uuid:public_id>/force/", reports.ask_force, name="ask_force"),
    path("reports/<uuid:public_id>/agree/", reports.agree_force, name="agree_force"),
    path("reports/<uuid:public_id>/prepare/", reports.prepare_day, name="prepare_day"),
    path("reports/<uuid:public_id>/sign/", reports.sign_day, name="sign_day"),
    path("discrepancies/", discrepancies.index, name="discrepancies"),
    path("discrepancies/<uuid:public_id>/", discrepancies.detail, name="discrepancy"),
    path("discrepancies/<uuid:public_id>/recover/", discrepancies.recover_one, name="recover"),
    path("discrepancies/<uuid:public_id>/ignore/", discrepancies.ignore, name="ignore"),
    path(
        "discrepancies/<uuid:public_id>/resolve/",
        discrepancies.resolve,
        name="resolve_discrepancy",
    ),
    path("discrepancies/<uuid:public_id>/reopen/", discrepancies.reopen, name="reopen"),
    path("trace/", trace.index, name="trace"),
    path("alerts/", alerts.index, name="alerts"),
    path("audit/", audit.index, name="audit"),
    path("you/", members.you, name="you"),
    path("you/tenant/", members.tenant, name="tenant"),
    path("you/appearance/", members.appearance, name="appearance"),
    path("you/sign-out/", members.sign_out, name="sign_out"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]
