"""A real PostgreSQL, a real Valkey and the processes of this deployment, with nothing to install."""
