"""Django's settings for Deputy. Every value that differs between installations is a variable.

DATABASE_URL     postgresql://user:password@host:port/name; unset: the embedded PostgreSQL of DEPUTY_HOME
DATABASE_DIRECT_URL  the same database without a pooler, where DATABASE_URL leads to one in transaction mode
DATABASE_REPLICA_URL  a replica that lists may be read from (none; common/replica.py)
DEPUTY_HOME      where Deputy keeps its secret, its embedded database and written e-mail (.deputy)
SECRET_KEY       unset: generated once and kept in DEPUTY_HOME
HOST, PORT       where `make run` listens (127.0.0.1, 8000)
ALLOWED_HOSTS    names the server answers to (localhost, 127.0.0.1, [::1] and HOST)
BEHIND_HTTPS     yes behind a proxy that ends TLS and sets X-Forwarded-Proto: secure cookies, HSTS
CSRF_TRUSTED_ORIGINS  further origins whose forms are accepted
CORS_ORIGINS     origins whose pages may call the API with a token (none)
DEBUG            yes only while developing
PUBLIC_URL       where people reach Deputy, for links in e-mail (where `make run` listens)
MCP_ALLOW        host:port of registered MCP servers at addresses that are not public (none)
A2A_ALLOW        the same for remote A2A agents (none)
MODEL_ALLOW      host:port of models' servers that organizations may name at such addresses (none)
WEBHOOK_ALLOW    host:port of webhooks' receivers at addresses that are not public (none)
IDENTITY_ALLOW   host:port of providers of identities at addresses that are not public (none)
OIDC_ISSUER      the provider of identities for the whole installation (none; docs/sign-in.md)
NOTIFY_ALLOW     hosts, or host:port, of chats that people run themselves and that channels may name (none)
NOTIFY_SECONDS   how long a channel is sent no second message about approvals (30)
EMAIL_URL        where e-mail goes (unset: files in DEPUTY_HOME/outbox), EMAIL_FROM its sender
DEPUTY_MODEL     the model agents use where their role names none (local: needs no account)
WORKERS          processes that take runs' steps (2), CARRIERS those that await the network (1)
LOG_FORMAT       plain or json
METRICS_TOKEN    who has it reads /metrics and what /readyz found; so do the networks of METRICS_ALLOW

Deputy's own limits follow at the end of this file.
"""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

from common import env
from config.unfold import UNFOLD  # noqa: F401
from launch import postgres
from launch.home import address, home, secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
DEPUTY_HOME = home()

DEBUG = env.flag("DEBUG", False)
SECRET_KEY = env.text("SECRET_KEY", "") or secret_key()
if len(SECRET_KEY) < 32 and not DEBUG:
    raise env.BadSetting("SECRET_KEY is too short; it takes at least 32 characters; unset, one is made.")

HOST = env.host()
PORT = env.port()
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
if HOST not in ("0.0.0.0", "::", "::1", *ALLOWED_HOSTS):  # noqa: S104  (compared, not bound)
    ALLOWED_HOSTS.append(f"[{HOST}]" if ":" in HOST else HOST)

# Applications, each above what it may import

OTHER_APPS = env.names("DEPUTY_APPS", ())  # Django applications of other packages (docs/extending.md)
INSTALLED_APPS = [
    *OTHER_APPS,
    "runs",
    "memory",
    "policy",
    "groups",
    "config.site.Unfold",
    "unfold.contrib.filters",
    "unfold.contrib.import_export",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "import_export",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.usersessions",
    "oauth2_provider",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "common.csp.policy",
    "config.static.StaticFiles",
    "common.kept_answers.private",
    "corsheaders.middleware.CorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "groups.current.CurrentOrganization",
    "django.contrib.messages.middleware.MessageMiddleware",
    "groups.second.Proposing",
    "allauth.account.middleware.AccountMiddleware",
    "groups.sign_in.doors.PacedDoors",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "common.api.errors.Unavailable",
    "common.characters.Characters",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"

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
                "runs.web.pages.theme",
                "runs.web.pages.door",
            ],
            "libraries": {"web": "runs.web.tags"},
            "builtins": ["django.templatetags.i18n", "common.tags"],
        },
    },
]

# Database: manage.py and config/asgi.py start the embedded server before they read this

LEASE_SECONDS = env.whole_number("LEASE_SECONDS", 10)
LOCK_SECONDS = env.whole_number("LOCK_SECONDS", 2)  # that a statement waits for what another has locked
SYNCHRONOUS_STANDBY = env.flag("SYNCHRONOUS_STANDBY", False)  # whoever takes over has all there was
DATABASE_SETTINGS: dict[str, Any] = {
    "ENGINE": "common.postgres",  # notices a session that is gone without a word
    "CONN_MAX_AGE": 60,
    "CONN_HEALTH_CHECKS": True,  # without, one dropped connection stops a worker for good
    "OPTIONS": {
        "prepare_threshold": 2,  # of what common.db.rows runs
        # a network that drops what it is given is noticed by the kernel within LEASE_SECONDS
        "connect_timeout": max(2, LEASE_SECONDS // 4),
        "keepalives_idle": max(1, LEASE_SECONDS // 4),
        "keepalives_interval": max(1, LEASE_SECONDS // 4),
        "keepalives_count": 2,
        "tcp_user_timeout": LEASE_SECONDS * 1000,
    },
}
DATABASES = {
    "default": env.database(env.text("DATABASE_URL", "") or postgres.url(DEPUTY_HOME), DATABASE_SETTINGS)
}
SESSION_DATABASE = "default"  # where what is bound to a session goes (common.db.own_connection)
if env.is_pooled():
    SESSION_DATABASE = "direct"
    DATABASES["direct"] = env.database(
        env.text("DATABASE_DIRECT_URL", ""), DATABASE_SETTINGS, variable="DATABASE_DIRECT_URL"
    )
    # a transaction may get another session than the one before: what it finds there is set by nobody here
    in_transactions: dict[str, Any] = {
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "POOLED": True,
        "OPTIONS": DATABASE_SETTINGS["OPTIONS"] | {"prepare_threshold": None},
    }
    DATABASES["default"] = env.database(env.text("DATABASE_URL", ""), DATABASE_SETTINGS | in_transactions)
if env.text("DATABASE_REPLICA_URL", ""):  # only what asks for it by name reads it (common/replica.py)
    DATABASES["replica"] = env.database(
        env.text("DATABASE_REPLICA_URL", ""),
        DATABASE_SETTINGS | {"ENGINE": "common.postgres.replica", "TEST": {"MIRROR": "default"}},
        variable="DATABASE_REPLICA_URL",
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The queue: django-q2 on the same database, so that a message commits with the step that sends it, or on
# Redis, where messages for runs are sent after the commit and may be lost (docs/operating.md)

WEB_THREADS = env.whole_number("WEB_THREADS", 12, most=64)  # of one web process, each with a connection
WORKERS = env.whole_number("WORKERS", 2, most=64)
BROKERS = {"postgres": "runs.queue.broker.PostgresBroker", "redis": "runs.queue.redis_broker.RedisBroker"}
Q_BROKER = env.choice("Q_BROKER", "postgres", tuple(BROKERS))
REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")
if Q_BROKER == "redis" and importlib.util.find_spec("redis") is None:
    raise env.BadSetting("Q_BROKER is redis and its client is not installed: pip install redis==8.1.0.")
Q_CLUSTER = {
    "name": "deputy",
    "label": "Queue",
    "broker_class": BROKERS[Q_BROKER],
    "workers": WORKERS,
    # PostgreSQL's broker takes no more than can start, and its process must not block when it stops;
    # what Redis's broker has taken is lost with its group of workers
    "queue_limit": WORKERS if Q_BROKER == "redis" else 128,
    "timeout": 3600,  # of other tasks; a run's steps have deadlines of their own (STEP_SECONDS)
    "retry": 7200,  # when a message nobody acknowledged is delivered again; a lost run is found much sooner
    "save_limit": -1,
    "recycle": 5000,
    "scheduler": False,  # what is due by the clock is the sweep's
    "ack_failures": True,  # what failed is the run's to retry, not the queue's
}

# People

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{validator}"}
    for validator in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = ["groups.current.MembershipBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "web:home"
LOGOUT_REDIRECT_URL = "account_login"
PASSWORD_RESET_TIMEOUT = 3600  # seconds that a link to set a new password works

# django-allauth: how attempts are paced, who may have an account and what confirms a person is Deputy's own
# rule (groups/sign_in); allauth's own limits, which each process would count for itself, are off.

ACCOUNT_ADAPTER = "groups.sign_in.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_LOGIN_TIMEOUT = 900
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = False
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "groups.sign_in.links.ResetLinks"  # noqa: S105 - a class
ACCOUNT_FORMS = {
    "login": "groups.sign_in.forms.SignInForm",
    "request_login_code": "groups.sign_in.forms.RequestCodeForm",
    "confirm_login_code": "groups.sign_in.forms.EnterCodeForm",
    "reset_password": "groups.sign_in.forms.ResetForm",
}
MFA_ADAPTER = "groups.sign_in.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # a passkey stands for the person, not for what they carry
MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody opens an account in another's name: there is no sign-up
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = "Deputy"
MFA_RATE_LIMITS = False
MFA_FORMS = {
    "authenticate": "groups.sign_in.forms.FactorForm",
    "reauthenticate": "groups.sign_in.forms.ConfirmFactorForm",
}
SOCIALACCOUNT_RATE_LIMITS = False

X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
CORS_ALLOWED_ORIGINS = env.origins("CORS_ORIGINS")
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_CREDENTIALS = False  # a token, never somebody's session
CORS_ALLOW_HEADERS = (
    *("accept", "authorization", "content-type"),
    *("idempotency-key", "if-match", "last-event-id", "x-organization"),
)
CORS_EXPOSE_HEADERS = (
    "Location",
    "Retry-After",
    "Idempotency-Replayed",
    "ETag",
    "RateLimit",
    "RateLimit-Policy",
)
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
BEHIND_HTTPS = env.flag("BEHIND_HTTPS", False)
if BEHIND_HTTPS and not DEBUG:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]  # probes come past the proxy
    SECURE_HSTS_SECONDS = 31_536_000
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    LANGUAGE_COOKIE_SECURE = True
    # a name that browsers take from this host over HTTPS alone, for the whole site
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
# Whether every other name below this one speaks HTTPS too is not Deputy's to promise. A program on the
# person's own machine gets its answer by http (RFC 8252); groups/oauth.py refuses http to anywhere else.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021", "oauth2_provider.W008"]

PUBLIC_URL = env.origin("PUBLIC_URL", address(f"http://{HOST}:{PORT}"))

# Language and time

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# Static files: served by Deputy itself, straight from the packages unless `collectstatic` has run

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = not STATIC_ROOT.is_dir()
warnings.filterwarnings("ignore", message="No directory at: .*staticfiles")
# whitenoise hands ASGI a plain file iterator; its files are small and read once
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

# REST API

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "groups.api.authentication.TokenAuthentication",
        "groups.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "common.api.permissions.InScope",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["common.api.throttles.Allowance"],
    "NUM_PROXIES": env.whole_number("PROXIES", 1 if BEHIND_HTTPS else 0, least=0, most=10),
    "DEFAULT_PARSER_CLASSES": ["common.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "common.api.negotiation.JSONAnyway",
    "DEFAULT_FILTER_BACKENDS": ["common.api.filters.KnownParameters"],
    "DEFAULT_PAGINATION_CLASS": "common.api.pagination.NewestFirst",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "common.api.schema.Schema",
    "EXCEPTION_HANDLER": "groups.second.handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Deputy",
    "DESCRIPTION": "The control plane for an organisation's agents.",
    "VERSION": "0.1.0",
    "CONTACT": {"name": "Deputy"},
    "SERVERS": [{"url": "/", "description": "The Deputy that serves this document."}],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.operations.named",
        "common.api.document.tidied",
        "config.openapi.events.typed",
        "config.openapi.words.described",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],  # it tells nothing of anybody's data
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",  # from our own static files, not from somebody else's server
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatus": "runs.models.choices.RunStatus",
        "RunKind": "runs.models.choices.RunKind",
        "WaitKind": "runs.models.choices.WaitKind",
        "CallStatus": "runs.models.choices.CallStatus",
        "ApprovalStatus": "runs.models.choices.ApprovalStatus",
        "ApprovalEffect": "runs.models.choices.ApprovalEffect",
        "EventType": "runs.models.choices.EventType",
        "Driver": "runs.models.choices.Driver",
        "Effect": "policy.models.rules.Effect",
        "DeliveryStatus": "runs.models.webhooks.DeliveryStatus",
        "WebhookEvent": "runs.models.webhooks.WebhookEvent",
        # as these were called before others had a state and an outcome
        "StateEnum": [("delivered", "It answered a question"), ("kept", "The agent reads it next")],
        "OutcomeEnum": ["succeeded", "failed", "retry"],
        "ScheduleState": "runs.models.schedules.ScheduleState",
        "ScheduledOutcome": "runs.models.schedules.Outcome",
        "OnMissed": "runs.models.schedules.OnMissed",
        "OnExpiry": "policy.models.rules.OnExpiry",
        "MemoryType": "memory.models.MemoryType",
        "MemoryStatus": "memory.models.MemoryStatus",
    },
}

# A provider of identities for the whole installation; organizations have their own in the admin

OIDC = env.openid()
IDENTITY_ALLOW = env.names("IDENTITY_ALLOW", ())

# Programs that people connect: an OAuth 2.1 authorization server for Deputy's own API and MCP

OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER = {
    "SCOPES_BACKEND_CLASS": "groups.oauth.Scopes",
    "OAUTH2_VALIDATOR_CLASS": "groups.oauth.Validator",
    "OIDC_ISS_ENDPOINT": PUBLIC_URL.rstrip("/"),
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 900,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 3600,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "PKCE_REQUIRED": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"],  # http on the person's own machine (Validator)
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "CIMD_ENABLED": True,
    "CIMD_METADATA_FETCHER": "groups.oauth.Documents",
    "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
    "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token"],
    "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": ["none"],
    "OAUTH2_PROTECTED_RESOURCE_NAME": "Deputy",
    **{
        f"COMPLIANT_BCP_RFC9700_{name}": True
        for name in (
            *("IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT"),
            *("AUTHZ_RESPONSE_ISS", "TOKEN_STORAGE", "REFRESH_TOKEN", "PKCE_REQUIRED"),
        )
    },
}

# E-mail: written to files until EMAIL_URL says where to send it

EMAIL_BACKEND = "common.mail.PrivateFiles"
EMAIL_FILE_PATH = str(DEPUTY_HOME / "outbox")
EMAIL_TIMEOUT = 20  # seconds
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "deputy@localhost")
if email_url := env.text("EMAIL_URL", ""):
    globals().update(env.email(email_url))
if EMAIL_BACKEND == "django.core.mail.backends.filebased.EmailBackend":
    EMAIL_BACKEND = "common.mail.PrivateFiles"
# where mail goes nowhere, nobody waits for a link in it
ACCOUNT_EMAIL_VERIFICATION = "optional" if email_url else "none"

# Looking after it: logs, and who may see metrics and what a probe found (config/watchers.py)

LOG_FORMAT = env.choice("LOG_FORMAT", "plain", ("plain", "json"))
METRICS_TOKEN = env.text("METRICS_TOKEN", "")
if METRICS_TOKEN and len(METRICS_TOKEN) < 16:
    raise env.BadSetting("METRICS_TOKEN is too short; it takes at least 16 characters.")
METRICS_ALLOW = env.networks("METRICS_ALLOW")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"()": "common.logs.Plain"}, "json": {"()": "common.logs.Json"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "gunicorn.error": {"handlers": ["stderr"], "propagate": False},  # a stream that fails, keys masked
        **{app: {"level": "INFO"} for app in ("runs", "memory", "policy", "groups")},
    },
}

# Deputy's own limits

DEPUTY_MODEL = env.text("DEPUTY_MODEL", "local")
DEPUTY_TOOLS = env.paths("DEPUTY_TOOLS")  # modules or objects of other packages (docs/extending.md)
DEPUTY_PROVIDERS = env.paths("DEPUTY_PROVIDERS")  # prefix=package.module:object, comma-separated
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL", "")  # none: search goes by words alone
RUN_STEPS = env.whole_number("RUN_STEPS", 25)  # model replies of one run
RUN_DEPTH = env.whole_number("RUN_DEPTH", 5)  # levels of delegation
RUN_CHILDREN = env.whole_number("RUN_CHILDREN", 20)  # runs one run may start
RUN_TOKENS = env.whole_number("RUN_TOKENS", 200_000)
CONTEXT_TOKENS = env.whole_number("CONTEXT_TOKENS", 24_000)  # of an agent's view before pages are folded
RUN_SECONDS = env.whole_number("RUN_SECONDS", 3600)
CHILD_WAIT_SECONDS = env.whole_number("CHILD_WAIT_SECONDS", 300)
SWEEP_SECONDS = env.whole_number("SWEEP_SECONDS", 5)  # between two looks for what was lost or is overdue
STEP_SECONDS = env.whole_number("STEP_SECONDS", 600)  # of one step, after which its lease is let go
HANDOFF_SECONDS = env.whole_number("HANDOFF_SECONDS", 30)  # after which a worker hands on through the queue
NOTIFY_SECONDS = env.whole_number("NOTIFY_SECONDS", 30)
APPROVAL_ALARM_SECONDS = env.whole_number("APPROVAL_ALARM_SECONDS", 24 * 3600)  # that one waits without alarm
APPROVAL_SECONDS = env.whole_number("APPROVAL_SECONDS", 7 * 24 * 3600)  # to decide
MODEL_SECONDS = env.figures("MODEL_SECONDS", 120)  # of one call, by the model's name or a pattern
MODEL_CALLS = env.figures("MODEL_CALLS", 2000)  # of one model under way at once, likewise
TOOL_CALLS = env.figures("TOOL_CALLS", 16)  # of one tool that leaves the database, likewise
HOST_CALLS = env.figures("HOST_CALLS", 2000)  # to one host, by its name as URLs have it
ORGANIZATION_CALLS = env.whole_number("ORGANIZATION_CALLS", 1000)  # of one organization: leaves room
CARRIERS = env.whole_number("CARRIERS", 1, least=0, most=16)  # processes beside each cluster's workers
CARRIER_CALLS = env.whole_number("CARRIER_CALLS", 2000)  # that one carrier awaits at once
CARRIER_THREADS = env.whole_number(
    "CARRIER_THREADS", 64, most=500
)  # for tools, whose code is not asynchronous
CARRIER_ERRANDS = env.whole_number(
    "CARRIER_ERRANDS", 8, least=4, most=200
)  # threads for webhooks, mail, calls of outside agents and embeddings
BACKOFF_INLINE_SECONDS = 1  # a longer pause before a model is asked again is a wait without a worker
ASKED_AGAIN_SECONDS = env.whole_number(
    "ASKED_AGAIN_SECONDS", 600
)  # the same words of a client: the same call
MCP_HOLD_SECONDS = env.whole_number(
    "MCP_HOLD_SECONDS", 4, least=0, most=45
)  # one client known gives up after 5
A2A_HOLD_SECONDS = env.whole_number(
    "A2A_HOLD_SECONDS", 4, least=0, most=45
)  # the official Python client gives up after 5
CONFIRMED_SECONDS = env.whole_number("CONFIRMED_SECONDS", 900)  # after a sign-in it counts as the person
ACCOUNT_REAUTHENTICATION_TIMEOUT = CONFIRMED_SECONDS
SESSION_SECONDS = env.whole_number("SESSION_SECONDS", 14 * 24 * 3600)  # after which one signs in anew
SESSION_IDLE_SECONDS = env.whole_number("SESSION_IDLE_SECONDS", 24 * 3600)  # without opening a page
SESSION_COOKIE_AGE = SESSION_SECONDS
PERSONAL_ROLE = "Personal agent"  # the role of a personal agent made on first use
MAIL_DOMAIN = "deputy.localhost"  # in the Message-ID of mail that agents send
API_PER_MINUTE = env.whole_number("API_PER_MINUTE", 1200, least=0)  # requests of one token or person
API_PER_MINUTE_UNKNOWN = env.whole_number("API_PER_MINUTE_UNKNOWN", 120, least=0)  # of one address
BODY_BYTES = env.whole_number("BODY_BYTES", 1_048_576, least=10_000)  # of a request; files may be larger
UPLOAD_BYTES = env.whole_number("UPLOAD_BYTES", 20_971_520, least=10_000)
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_BYTES  # Django's own, of a form without its files
STREAMS = env.whole_number("STREAMS", 50)  # live streams and long polls of one token in one web process
STREAMS_ORGANIZATION = env.whole_number("STREAMS_ORGANIZATION", 500)  # of one organization, likewise
CALLS_IN_REPLY = env.whole_number("CALLS_IN_REPLY", 32)  # of a model; the rest is refused
OPEN_APPROVALS = env.whole_number("OPEN_APPROVALS", 20)  # of one run
OPEN_APPROVALS_PERSON = env.whole_number("OPEN_APPROVALS_PERSON", 200)  # of one person's runs
OPEN_APPROVALS_ALL = env.whole_number("OPEN_APPROVALS_ALL", 1000)  # of one organization
SIGN_IN_SECONDS = env.whole_number("SIGN_IN_SECONDS", 300)  # in which are allowed, of attempts to sign in:
SIGN_INS = env.whole_number("SIGN_INS", 10)  # to one account from one address
SIGN_INS_ADDRESS = env.whole_number("SIGN_INS_ADDRESS", 100)  # from one address
SIGN_IN_MAILS = env.whole_number("SIGN_IN_MAILS", 5)  # with a link or a code, to one address
SIGN_INS_ACCOUNT = env.whole_number("SIGN_INS_ACCOUNT", 50)  # to one account from browsers it does not know
QUEUE_LIMIT = env.whole_number("QUEUE_LIMIT", 1000)  # pending runs of an organization that names no limit
TOKENS = env.whole_number("TOKENS", 100)  # that work, of one person in an organization
WEBHOOKS = env.whole_number("WEBHOOKS", 50)  # of one organization
RULES = env.whole_number("RULES", 2000)  # of one organization: each call asks all that are about its tool
GRANTS = env.whole_number("GRANTS", 1000)  # standing approvals of one organization that have not ended
PREFERENCES = env.whole_number("PREFERENCES", 500)  # of one person in an organization
OUTBOUND_ALLOW = env.names("OUTBOUND_ALLOW", ())  # host:port of internal services that tools may reach
MCP_ALLOW = env.names("MCP_ALLOW", ())
A2A_ALLOW = env.names("A2A_ALLOW", ())
A2A_HOPS = env.whole_number("A2A_HOPS", 3, least=0, most=20)  # of Deputies that hand a task on to the next
MODEL_ALLOW = env.names("MODEL_ALLOW", ())
WEBHOOK_ALLOW = env.names("WEBHOOK_ALLOW", ())
NOTIFY_ALLOW = env.names("NOTIFY_ALLOW", ())
QUEUE_ENABLED = True
