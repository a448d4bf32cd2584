"""Routes of this deployment: the webhook door, the API, the way in and the console."""

from django.contrib.auth.views import LoginView
from django.urls import include, path

from reliability.claim import webhook

urlpatterns = [
    path("hooks/<str:token>/", webhook.receive, name="hook"),
    # Some providers cut the last slash off; a redirect would lose the body.
    path("hooks/<str:token>", webhook.receive),
    path("api/v1/", include("reliability.api.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("", include("reliability.console.urls")),
]

handler500 = "reliability.console.views.errors.server_error"
