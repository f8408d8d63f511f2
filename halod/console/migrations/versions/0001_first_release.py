# SPDX-License-Identifier: Apache-2.0
"""The tables of the first release. A copy of `store.schema` as it was then: later steps begin from here."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

Column = sa.Column[Any]


def _keys(names: str) -> list[Column]:
    return [sa.Column(name, TEXT, nullable=False) for name in names.split()]


def _texts(names: str) -> list[Column]:
    return [sa.Column(name, TEXT, nullable=False, server_default="") for name in names.split()]


def _counts(names: str) -> list[Column]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, server_default="0") for name in names.split()]


def _times(names: str, *, null: bool = False) -> list[Column]:
    return [sa.Column(name, sa.BigInteger(), nullable=null) for name in names.split()]


def _flags(names: str) -> list[Column]:
    return [
        sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()) for name in names.split()
    ]


def _serial(name: str) -> Column:
    return sa.Column(name, SERIAL, nullable=False, autoincrement=True)


def _primary(table: str, columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns.split(), name=f"pk_{table}")


def _unique(table: str, columns: str) -> sa.UniqueConstraint:
    names = columns.split()
    return sa.UniqueConstraint(*names, name=f"uq_{table}_{'_'.join(names)}")


def _thing(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["thing"], ["things.id"], name=f"fk_{table}_thing")


def _index(table: str, columns: str) -> None:
    names = columns.split()
    op.create_index(f"ix_{table}_{'_'.join(names)}", table, names)


def upgrade() -> None:
    _devices()
    _findings()
    _people()
    _work()


def _devices() -> None:
    op.create_table(
        "devices",
        *_keys("device"),
        *_texts(
            "hostname os halod username ring digest mode claimed_time units install_id assigned_ring assigned_units"
        ),
        *_times("first_seen changed_at"),
        *_texts("content"),
        *_counts("revision"),
        *_counts("findings drift_total skipped accounts files definitions"),
        *_texts("not_covered error_code last_error"),
        *_flags("truncated partly silent limited"),
        _primary("devices", "device"),
    )
    _index("devices", "digest hostname device")
    _index("devices", "digest ring")
    _index("devices", "hostname device")
    _index("devices", "limited hostname device")
    _index("devices", "partly hostname device")
    _index("devices", "ring hostname device")
    op.create_table(
        "heartbeats",
        *_keys("device"),
        *_times("last_report"),
        _primary("heartbeats", "device"),
    )
    _index("heartbeats", "last_report device")
    op.create_table(
        "device_units",
        *_keys("unit device"),
        _primary("device_units", "unit device"),
    )
    _index("device_units", "device")
    op.create_table(
        "skipped",
        *_keys("device"),
        sa.Column("nth", sa.Integer(), nullable=False),
        *_texts("username harness file reason server errno"),
        *_counts("line column_"),
        _primary("skipped", "device nth"),
    )
    _index("skipped", "harness device nth")
    _index("skipped", "reason device nth")
    op.create_table(
        "approved",
        *_keys("device harness username entry"),
        *_counts("count"),
        _primary("approved", "device harness username entry"),
    )
    _index("approved", "entry device")
    op.create_table(
        "seen_names",
        *_keys("device name"),
        *_times("last_seen"),
        _primary("seen_names", "device name"),
    )
    _index("seen_names", "last_seen")
    op.create_table(
        "transitions",
        _serial("seq"),
        *_keys("device tid"),
        *_times("received"),
        *_texts("claimed_time event username harness file scope server kind transport host sha256 was"),
        *_flags("secret"),
        _primary("transitions", "seq"),
        _unique("transitions", "device tid"),
        sqlite_autoincrement=True,
    )
    _index("transitions", "device seq")
    _index("transitions", "received")


def _findings() -> None:
    op.create_table(
        "things",
        _serial("id"),
        *_texts("kind server what transport fix"),
        *_times("first_seen"),
        _primary("things", "id"),
        _unique("things", "kind server what"),
    )
    _index("things", "server id")
    _index("things", "what id")
    op.create_table(
        "findings",
        _serial("id"),
        *_keys("device"),
        *_times("thing"),
        *_texts("username harness file scope server"),
        *_counts("nth"),
        *_texts("kind transport host sha256 detail fix ring"),
        *_counts("projects"),
        *_flags("enabled secret stale"),
        *_times("first_seen last_seen"),
        _primary("findings", "id"),
        _unique("findings", "device username harness file scope server nth"),
        _thing("findings"),
    )
    _index("findings", "harness id")
    _index("findings", "kind id")
    _index("findings", "ring id")
    _index("findings", "server id")
    _index("findings", "sha256 id")
    _index("findings", "thing id")
    op.create_table(
        "group_counts",
        *_times("place thing"),
        *_texts("kind"),
        *_counts("findings devices"),
        *_times("last_seen"),
        _primary("group_counts", "place thing"),
    )
    _index("group_counts", "place devices thing")
    _index("group_counts", "place kind devices thing")
    _index("group_counts", "place last_seen thing")
    op.create_table(
        "tallies",
        *_keys("dim value kind"),
        *_counts("findings devices"),
        *_times("first_seen"),
        _primary("tallies", "dim value kind"),
    )
    _index("tallies", "dim devices value kind")
    op.create_table(
        "days",
        sa.Column("day", sa.Integer(), nullable=False),
        *_keys("kind"),
        *_counts("open opened changed resolved"),
        _primary("days", "day kind"),
    )


def _people() -> None:
    op.create_table(
        "tokens",
        _serial("id"),
        *_keys("hash"),
        *_texts("kind device install_id name role created_by"),
        *_times("created expires"),
        *_times("revoked used", null=True),
        _primary("tokens", "id"),
        _unique("tokens", "hash"),
    )
    _index("tokens", "device id")
    _index("tokens", "kind id")
    op.create_table(
        "enroll_keys",
        _serial("id"),
        *_keys("hash"),
        *_texts("name ring units created_by"),
        *_times("created expires"),
        *_counts("max_uses uses"),
        *_times("revoked", null=True),
        _primary("enroll_keys", "id"),
        _unique("enroll_keys", "hash"),
    )
    op.create_table(
        "enrollments",
        *_keys("device"),
        *_texts("install_id hostname os halod address"),
        *_counts("key_id"),
        *_times("first_asked last_asked"),
        *_counts("asked others"),
        *_texts("state decided_by"),
        _primary("enrollments", "device"),
    )
    _index("enrollments", "state device")
    op.create_table(
        "sessions",
        *_keys("hash"),
        *_texts("subject name role csrf provider id_token_sid"),
        *_times("created used expires"),
        _primary("sessions", "hash"),
    )
    _index("sessions", "expires")
    op.create_table(
        "logins",
        *_keys("hash"),
        *_texts("kind data"),
        *_times("expires"),
        _primary("logins", "hash"),
    )
    _index("logins", "expires")
    op.create_table(
        "audit",
        _serial("seq"),
        *_times("time"),
        *_texts("actor actor_kind action target detail address"),
        _primary("audit", "seq"),
        sqlite_autoincrement=True,
    )
    _index("audit", "action seq")
    _index("audit", "actor seq")


def _work() -> None:
    op.create_table(
        "policies",
        _serial("id"),
        *_texts("digest org"),
        *_counts("version"),
        *_times("issued expires", null=True),
        sa.Column("envelope", sa.LargeBinary(), nullable=False),
        *_texts("uploaded_by"),
        *_times("uploaded"),
        _primary("policies", "id"),
    )
    _index("policies", "digest")
    op.create_table(
        "deliveries",
        _serial("seq"),
        *_texts("hook event payload key state"),
        *_counts("tries"),
        *_times("created next_try"),
        *_texts("last_error"),
        _primary("deliveries", "seq"),
        _unique("deliveries", "hook key"),
    )
    _index("deliveries", "hook state next_try seq")
    _index("deliveries", "state seq")
    op.create_table(
        "leases",
        *_keys("name"),
        *_texts("holder"),
        *_times("until"),
        _primary("leases", "name"),
    )
    op.create_table(
        "meta",
        *_keys("key"),
        *_texts("value"),
        _primary("meta", "key"),
    )
