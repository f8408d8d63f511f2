# SPDX-License-Identifier: Apache-2.0
"""Alembic's entry: runs the versions on the connection that `store.migrate` gives, inside its transaction."""

from alembic import context

from halod.console.store.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transaction_per_migration=False,
)
context.run_migrations()
