"""Django settings of this deployment: they compute addresses and start nothing."""

import os
from pathlib import Path
from typing import Any

from reliability.embedded.servers import running_addresses
from reliability.project import environment as env
from reliability.project import startup

BASE_DIR = Path(__file__).resolve().parents[2]
env.refuse_unknown(os.environ)

# The embedded servers stand in when no address is given.
DATA_DIR = Path(os.environ.get("RELIABILITY_DATA") or BASE_DIR / ".data").absolute()
EMBEDDED = env.is_embedded(os.environ)
_addresses = running_addresses(DATA_DIR) if EMBEDDED else None
_database_url = _addresses.database_url if _addresses else os.environ.get("DATABASE_URL")
_broker_url = _addresses.broker_url if _addresses else os.environ.get("BROKER_URL")
NOT_RUNNING = _database_url is None

DEBUG = env.flag(os.environ, "DEBUG")
_made = env.embedded_secrets(DATA_DIR) if EMBEDDED else env.Secrets("", "")
SECRET_KEY = os.environ.get("SECRET_KEY") or _made.secret_key
RELIABILITY_KEY_RING = env.key_ring(os.environ.get("RELIABILITY_KEY_RING") or _made.key_ring)
ALLOWED_HOSTS = env.words(os.environ, "ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words(os.environ, "CSRF_TRUSTED_ORIGINS")
RELIABILITY_BASE_URL = os.environ.get("RELIABILITY_BASE_URL", "").rstrip("/")
RELIABILITY_HEARTBEAT_URL = os.environ.get("RELIABILITY_HEARTBEAT_URL", "")
RELIABILITY_METRICS_TOKEN = os.environ.get("RELIABILITY_METRICS_TOKEN", "")
if not (EMBEDDED or DEBUG):
    startup.refuse(
        startup.problems(
            secret_key=SECRET_KEY,
            hosts=ALLOWED_HOSTS,
            key_ring=RELIABILITY_KEY_RING,
            pace=os.environ.get("RELIABILITY_PACE", "shipped"),
        )
    )

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "axes",
    "django_filters",
    "django_htmx",
    "django_tables2",
    "reliability",
    "reliability.console",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "reliability.console.middleware.SecurityHeaders",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "reliability.project.urls"
WSGI_APPLICATION = "reliability.project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Every session gives up rather than wait for ever; a pool serves the web process's threads,
# a worker's thread keeps one connection (see CELERY_DB_REUSE_MAX).
_TIMEOUTS = (
    "-c statement_timeout=30s -c lock_timeout=5s -c idle_in_transaction_session_timeout=60s"
)
# The engine's small statements are planned once a connection: planning takes longer than they do.
_PLANS = "-c plan_cache_mode=force_generic_plan"
POOL = {"min_size": 2, "max_size": 20, "timeout": 5}
IN_WEB = os.environ.get("RELIABILITY_PROCESS") == "web"
_default: dict[str, Any] = env.database(
    _database_url or "postgresql://127.0.0.1:1/reliability"
)
_default["OPTIONS"] |= {"connect_timeout": 5, "options": f"{_TIMEOUTS} {_PLANS}"}
_default |= {"CONN_MAX_AGE": 0 if IN_WEB else None, "CONN_HEALTH_CHECKS": not IN_WEB}
if IN_WEB:
    _default["OPTIONS"]["pool"] = POOL
DATABASES = {"default": _default}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL

# Cookies travel without TLS only where nothing but loopback is served.
INSECURE_COOKIES = EMBEDDED or DEBUG
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not INSECURE_COOKIES
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 0 if INSECURE_COOKIES else 31_536_000
SECURE_PROXY_SSL_HEADER = None if INSECURE_COOKIES else ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = [
    # Redirecting to TLS and deciding for sub-domains and preload lists is the proxy's business.
    *("security.W005", "security.W008", "security.W021"),
    # On loopback there is no TLS to insist on.
    *(("security.W004", "security.W012", "security.W016") if INSECURE_COOKIES else ()),
]

EMAIL = env.email(os.environ.get("EMAIL_URL", ""))
globals().update(EMAIL)
DEFAULT_FROM_EMAIL = os.environ.get("DEFAULT_FROM_EMAIL", "reliability@localhost")

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# The broker is a doorbell: names and queues in JSON, nothing kept, nothing waited for.
CELERY_BROKER_URL = _broker_url or "redis://127.0.0.1:1/0"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "local"
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 30
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Celery closes a worker's connection before and after each task. To connect and to plan anew takes
# longer than most drains; a task looks first whether the connection it finds still answers.
CELERY_DB_REUSE_MAX = 10_000
# A plain publish to a broker that is down blocks for seconds; without retries it fails at once.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_retries": 0,
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5

RELIABILITY: dict[str, Any] = {}
