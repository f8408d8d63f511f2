# SPDX-License-Identifier: Apache-2.0
"""A real OpenID provider in a process of its own: Django with django-oauth-toolkit, as organisations run it.

    python -m tests.server.django_provider DIRECTORY

prints one line of JSON, `{"issuer": …}`, and serves on loopback until it is ended. There is one client, with a secret,
that has to use PKCE, and one person for each role, whose groups come in the claim `groups`.
"""

import json
import os
import socketserver
import sys
import wsgiref.simple_server

CLIENT, SECRET = "halo", "a-secret-of-this-test"
PASSWORD = "a-password-of-this-test"
PEOPLE = {"vera": ["staff"], "otto": ["staff", "helpdesk"], "ada": ["platform"], "nobody": ["guests"]}
LOGIN = """<form method="post">{% csrf_token %}{{ form.as_p }}<button>Sign in</button></form>"""


def configure(directory):
    """Write down what the provider is."""
    import django
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from django.conf import settings

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    os.makedirs(os.path.join(directory, "registration"), exist_ok=True)
    with open(os.path.join(directory, "registration", "login.html"), "w", encoding="utf-8") as file:
        file.write(LOGIN)
    settings.configure(
        SECRET_KEY="of this test",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": os.path.join(directory, "provider.db"),
            }
        },
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [directory],
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": ["django.contrib.auth.context_processors.auth"]},
            }
        ],
        LOGIN_URL="/accounts/login/",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.decode(),
            "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.validator",
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "who", "profile": "name", "email": "mail", "groups": "groups"},
        },
    )
    django.setup()


def fill(redirect):
    """Make tables, people and the client."""
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    for name, groups in PEOPLE.items():
        person = User.objects.create_user(name, f"{name}@acme.example", PASSWORD)
        person.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    Application.objects.create(
        client_id=CLIENT,
        client_secret=SECRET,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=redirect,
        post_logout_redirect_uris=redirect.partition("/login")[0] + "/login",
        algorithm="RS256",
        skip_authorization=True,
    )


def __getattr__(name):
    """Django asks for these by name, once it is configured."""
    if name == "urlpatterns":
        from django.urls import include, path

        return [
            path("o/", include("oauth2_provider.urls")),
            path("accounts/", include("django.contrib.auth.urls")),
        ]
    if name == "validator":
        from oauth2_provider.oauth2_validators import OAuth2Validator

        class Validator(OAuth2Validator):
            oidc_claim_scope = None

            def get_additional_claims(self, request):
                user = request.user
                groups = sorted(user.groups.values_list("name", flat=True))
                return {"preferred_username": user.username, "email": user.email, "groups": groups}

        return Validator
    raise AttributeError(name)


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


def main(directory, redirect):
    configure(directory)
    fill(redirect)
    from django.core.wsgi import get_wsgi_application

    server = wsgiref.simple_server.make_server("127.0.0.1", 0, get_wsgi_application(), _Server, _Quiet)
    print(json.dumps({"issuer": f"http://127.0.0.1:{server.server_port}/o"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.modules["tests.server.django_provider"] = sys.modules["__main__"]
    __name__ = "tests.server.django_provider"
    main(*sys.argv[1:])
