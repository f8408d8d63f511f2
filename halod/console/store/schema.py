# SPDX-License-Identifier: Apache-2.0
"""The tables of the console, one schema for SQLite and PostgreSQL.

Rules that every query rests on:

1. Times are whole seconds since 1970 by the console's own clock; what a device claims is a text beside it.
2. Counts are kept, not counted: `group_counts` and `tallies` change in the transaction that changes `findings`,
   by the difference that `delta` computes, so no page groups over half a million rows.
3. Writers of counts, findings and transitions hold one lock (`Store.change`), so `transitions.seq` grows in the
   order of commits and a reader that goes on from a cursor misses nothing.
4. A report that changes nothing writes one narrow row: `heartbeats`.
5. Secrets are kept as the hex sha256 of 256 random bits. Nothing here can be used as a credential.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_Serial: Final = BigInteger().with_variant(Integer, "sqlite")  # SQLite's row id has to be spelled INTEGER
# By code point on both engines (SQLite's default), whatever the locale of a database is: a prefix is a range of
# an index, and a key of a page compares alike everywhere.
_Text: Final = Text().with_variant(Text(collation="C"), "postgresql")


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, _Text, nullable=null, server_default=None if null else "")


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def _time(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


# --- what devices report -----------------------------------------------------------------------------------

DEVICES: Final = Table(
    "devices",
    METADATA,
    Column("device", _Text, primary_key=True),
    # Claims: what the device says of itself. Shown as claims.
    *(
        _text(name)
        for name in ("hostname", "os", "halod", "username", "ring", "digest", "mode", "claimed_time")
    ),
    _text("units"),  # the claim as a JSON list, sorted; device_units has a row for each
    _text("install_id"),
    # What the enrolment key says it is: "" and "[]" when it says nothing.
    _text("assigned_ring"),
    _text("assigned_units"),
    _time("first_seen"),
    _time("changed_at"),
    _text("content"),  # sha256 of the last status without what changes every time
    _count("revision"),  # drawn anew with every change of what is known of the device (`known.load`)
    *(_count(name) for name in ("findings", "drift_total", "skipped", "accounts", "files", "definitions")),
    _text("not_covered"),  # JSON list
    _text("error_code"),
    _text("last_error"),
    _flag("truncated"),
    _flag("partly"),  # something could not be read, or nobody was looked at
    _flag("silent"),  # as the job that looks for silent devices last found it
    _flag("limited"),  # refused for more than 1,000 distinct servers in 30 days
    Index(None, "hostname", "device"),
    Index(None, "ring", "hostname", "device"),
    Index(None, "digest", "ring"),
    Index(None, "digest", "hostname", "device"),
    Index(None, "partly", "hostname", "device"),
    Index(None, "limited", "hostname", "device"),
)

HEARTBEATS: Final = Table(
    "heartbeats",
    METADATA,
    Column("device", _Text, primary_key=True),
    _time("last_report"),
    Index(None, "last_report", "device"),
)

DEVICE_UNITS: Final = Table(
    "device_units",
    METADATA,
    Column("unit", _Text, primary_key=True),
    Column("device", _Text, primary_key=True),
    Index(None, "device"),
)

THINGS: Final = Table(
    "things",  # what a finding is about, over the fleet: a group of findings
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    _text("kind"),
    _text("server"),
    _text("what"),  # the host of an http definition, else the definition's sha256
    _text("transport"),
    _text("fix"),
    _time("first_seen"),
    UniqueConstraint("kind", "server", "what"),
    Index(None, "server", "id"),
    Index(None, "what", "id"),
)

FINDINGS: Final = Table(
    "findings",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("device", _Text, nullable=False),
    Column("thing", BigInteger, ForeignKey("things.id"), nullable=False),
    # Identity within the device (design 8): these and the n-th of that name.
    *(_text(name) for name in ("username", "harness", "file", "scope", "server")),
    _count("nth"),
    *(_text(name) for name in ("kind", "transport", "host", "sha256", "detail", "fix")),
    _text("ring"),  # the device's, copied for its index
    _count("projects"),
    *(_flag(name) for name in ("enabled", "secret", "stale")),
    _time("first_seen"),
    _time("last_seen"),  # when a report last said so anew; a report that changes nothing does not touch it
    UniqueConstraint("device", "username", "harness", "file", "scope", "server", "nth"),
    Index(None, "thing", "id"),
    Index(None, "sha256", "id"),
    Index(None, "harness", "id"),
    Index(None, "kind", "id"),
    Index(None, "ring", "id"),
    Index(None, "server", "id"),
)

SKIPPED: Final = Table(
    "skipped",
    METADATA,
    Column("device", _Text, primary_key=True),
    Column("nth", Integer, primary_key=True),
    *(_text(name) for name in ("username", "harness", "file", "reason", "server", "errno")),
    _count("line"),
    _count("column_"),
    Index(None, "reason", "device", "nth"),
    Index(None, "harness", "device", "nth"),
)

APPROVED: Final = Table(
    "approved",
    METADATA,
    Column("device", _Text, primary_key=True),
    Column("harness", _Text, primary_key=True),
    Column("username", _Text, primary_key=True),
    Column("entry", _Text, primary_key=True),
    _count("count"),
    Index(None, "entry", "device"),
)

TRANSITIONS: Final = Table(
    "transitions",
    METADATA,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("device", _Text, nullable=False),
    Column("tid", _Text, nullable=False),
    _time("received"),
    *(_text(name) for name in ("claimed_time", "event", "username", "harness", "file", "scope", "server")),
    *(_text(name) for name in ("kind", "transport", "host", "sha256", "was")),
    _flag("secret"),
    UniqueConstraint("device", "tid"),
    Index(None, "device", "seq"),
    Index(None, "received"),
    sqlite_autoincrement=True,  # a number is never used again, or a cursor would miss what comes after a prune
)

SEEN_NAMES: Final = Table(
    "seen_names",  # distinct server names of a device, for the limit of 1,000 in 30 days
    METADATA,
    Column("device", _Text, primary_key=True),
    Column("name", _Text, primary_key=True),  # first 32 hex digits of the sha256 of the name
    _time("last_seen"),
    Index(None, "last_seen"),
)

# --- counts over the fleet ---------------------------------------------------------------------------------

GROUP_COUNTS: Final = Table(
    "group_counts",  # of one thing: over the whole fleet, and by every combination of harness, ring, unit (`places`)
    METADATA,
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    # No foreign key: they are most of what is written.
    Column("thing", BigInteger, primary_key=True, autoincrement=False),
    _text("kind"),  # of the thing, for the index
    _count("findings"),
    _count("devices"),
    _time("last_seen"),
    Index(None, "place", "devices", "thing"),
    Index(None, "place", "last_seen", "thing"),
    Index(None, "place", "kind", "devices", "thing"),
    # No more than these: each is written for some eight rows of every finding that changes.
)

TALLIES: Final = Table(
    "tallies",  # dims: kind, harness, ring, unit, definition (value: sha256), server, reason, approved, digest
    METADATA,
    Column("dim", _Text, primary_key=True),
    Column("value", _Text, primary_key=True),
    Column("kind", _Text, primary_key=True),  # of the findings; "" for reason, approved and digest
    _count("findings"),  # rows; for `approved` the definitions, for `digest` 0
    _count("devices"),
    _time("first_seen"),
    Index(None, "dim", "devices", "value", "kind"),
)

DAYS: Final = Table(
    "days",  # the trend: open findings at the end of a day, and what happened on it
    METADATA,
    Column("day", Integer, primary_key=True),  # days since 1970, UTC
    Column("kind", _Text, primary_key=True),
    *(_count(name) for name in ("open", "opened", "changed", "resolved")),
)

# --- who may do what ---------------------------------------------------------------------------------------

TOKENS: Final = Table(
    "tokens",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("hash", _Text, nullable=False, unique=True),
    _text("kind"),  # device | api
    _text("device"),
    _text("install_id"),
    _text("name"),
    _text("role"),  # of an api token: viewer | operator | admin
    _text("created_by"),
    _time("created"),
    _time("expires"),
    _time("revoked", null=True),
    _time("used", null=True),  # by the day
    Index(None, "device", "id"),
    Index(None, "kind", "id"),
)

ENROLL_KEYS: Final = Table(
    "enroll_keys",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("hash", _Text, nullable=False, unique=True),
    _text("name"),
    _text("ring"),
    _text("units"),  # JSON list
    _text("created_by"),
    _time("created"),
    _time("expires"),
    _count("max_uses"),  # 0: no limit
    _count("uses"),
    _time("revoked", null=True),
)

ENROLLMENTS: Final = Table(
    "enrollments",  # a known device that asked again and did not prove to be itself: a conflict for an operator
    METADATA,
    Column("device", _Text, primary_key=True),
    *(_text(name) for name in ("install_id", "hostname", "os", "halod", "address")),
    _count("key_id"),
    _time("first_asked"),
    _time("last_asked"),
    _count("asked"),
    _count(
        "others"
    ),  # requests of other install ids while this one has the place: two machines claim one name
    _text("state"),  # waiting | accepted | refused
    _text("decided_by"),
    Index(None, "state", "device"),
)

SESSIONS: Final = Table(
    "sessions",
    METADATA,
    Column("hash", _Text, primary_key=True),
    *(_text(name) for name in ("subject", "name", "role", "csrf", "provider", "id_token_sid")),
    _time("created"),
    _time("used"),
    _time("expires"),
    Index(None, "expires"),
)

LOGINS: Final = Table(
    "logins",  # begun and not ended: one-time links (kind link) and journeys to the provider (kind oidc)
    METADATA,
    Column("hash", _Text, primary_key=True),
    _text("kind"),
    _text("data"),  # JSON
    _time("expires"),
    Index(None, "expires"),
)

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    _time("time"),
    *(_text(name) for name in ("actor", "actor_kind", "action", "target", "detail", "address")),
    Index(None, "action", "seq"),
    Index(None, "actor", "seq"),
    sqlite_autoincrement=True,
)

# --- policy, webhooks, jobs --------------------------------------------------------------------------------

POLICIES: Final = Table(
    "policies",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    _text("digest"),  # sha256:… of the payload, as agents report it
    _text("org"),
    _count("version"),
    _time("issued", null=True),
    _time("expires", null=True),
    Column("envelope", LargeBinary, nullable=False),
    _text("uploaded_by"),
    _time("uploaded"),
    Index(None, "digest"),
)

DELIVERIES: Final = Table(
    "deliveries",  # webhooks on their way; state dead is the dead-letter list
    METADATA,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    _text("hook"),  # name in the settings
    _text("event"),
    _text("payload"),  # JSON
    _text("key"),  # idempotency: an event is queued once for a hook
    _text("state"),  # due | done | dead
    _count("tries"),
    _time("created"),
    _time("next_try"),
    _text("last_error"),
    UniqueConstraint("hook", "key"),
    Index(None, "hook", "state", "next_try", "seq"),
    Index(None, "state", "seq"),
)

LEASES: Final = Table(
    "leases",  # which replica does a job
    METADATA,
    Column("name", _Text, primary_key=True),
    _text("holder"),
    _time("until"),
)

META: Final = Table("meta", METADATA, Column("key", _Text, primary_key=True), _text("value"))
