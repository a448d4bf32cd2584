"""How deep a handler found us in transactions, and whether it left us there."""

from reliability import sql


def open_transactions() -> tuple[bool, int]:
    """Tell how deep this thread's connection is in transactions, to be compared later."""
    connection = sql.database()
    return connection.get_autocommit(), len(connection.savepoint_ids)


def close_leaked(depth: int) -> bool:
    """Forget the atomic blocks a handler entered and never left; return whether there was harm.

    Harm is also a block marked for rollback: its end would undo the handler's rows without a word.
    What was done inside is undone by the caller's own savepoint or transaction.
    """
    connection = sql.database()
    left_open = len(connection.savepoint_ids) - depth
    if left_open > 0:
        del connection.savepoint_ids[depth:]
        del connection.atomic_blocks[-left_open:]
    return left_open > 0 or (connection.in_atomic_block and connection.needs_rollback)


def abandon() -> None:
    """Drop a connection that a handler left in a transaction, with whatever it did in there.

    Django would refuse to open another while it thinks that the block goes on.
    """
    connection = sql.database()
    connection.in_atomic_block = False
    connection.close()
