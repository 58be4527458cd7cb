"""The history of the schema, for Alembic. A released migration never changes."""
