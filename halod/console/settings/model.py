# SPDX-License-Identifier: Apache-2.0
"""halo-server.toml: what a console is told. Flags of `halo-server serve` override it.

Unknown keys, wrong types and contradictions are errors, all at once, each with where it stands and what to do
(`load`). Secrets stand in files that the settings name, never in the settings.
"""

import msgspec

DAY = 86_400


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """`[[webhook]]`: where events are sent."""

    name: str
    url: str
    secret_file: str
    events: tuple[str, ...] = ("finding.new", "definition.new", "device.silent", "coverage.lost")
    ca_file: str = ""


class Oidc(msgspec.Struct, frozen=True, kw_only=True):
    """`[oidc]`: who signs people in. A group that no list names gives no role."""

    issuer: str
    client_id: str
    client_secret_file: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email", "groups")
    groups_claim: str = "groups"
    viewer_groups: tuple[str, ...] = ()
    operator_groups: tuple[str, ...] = ()
    admin_groups: tuple[str, ...] = ()
    ca_file: str = ""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """`[retention]`, in days: how long what is past is kept."""

    transitions: int = 400
    audit: int = 400
    devices: int = 90
    """A device from which nothing has come for so long is forgotten, with its findings."""
    deliveries: int = 30


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`[limits]`: what one address and one token may ask."""

    reports_per_minute: int = 30
    """Of one token; a burst of as many is taken."""
    requests_per_minute: int = 600
    """Of one address, over everything but reports."""
    refused_per_minute: int = 30
    """Credentials that are not valid, of one address."""
    servers_in_30_days: int = 1000


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. Times in seconds."""

    database_url: str
    """SQLAlchemy's: `sqlite:////var/lib/halo-server/console.db`, `postgresql+psycopg://…`."""
    database_url_file: str = ""
    listen: str = "127.0.0.1:8640"
    public_url: str = ""
    """How browsers reach the console, without a path; needed for OIDC and behind a proxy."""
    hosts: tuple[str, ...] = ()
    """Further names, as in a Host header, under which requests are answered."""
    tls_cert: str = ""
    tls_key: str = ""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of declared proxies: their X-Forwarded-For is believed, nobody else's."""
    device_token_days: int = 365
    session_idle: int = 8 * 3600
    session_absolute: int = 24 * 3600
    silent_after: int = 3600
    policy_keys: tuple[str, ...] = ()
    """Public keys (as `halo keygen` prints them) that a published policy must be signed with."""
    policy_org: str = ""
    log_level: str = "info"
    log_format: str = "auto"
    oidc: Oidc | None = None
    webhooks: tuple[Hook, ...] = ()
    retention: Retention = Retention()
    limits: Limits = Limits()
