"""Data frames that compare the same two files and count what is missing.

Those of `PEERS` read two columns and store nothing. `pandas_stored` keeps what ours keeps: every
line with all its columns and its text, and a verdict for each line and each operation.
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

LINE_COLUMNS = (
    "tenant_id", "statement_id", "position", "identity", "provider_id", "references", "kind",
    "operation_class", "reference", "amount_minor", "currency", "exponent", "fee_minor",
    "net_minor", "occurred_at", "available_at", "status", "raw",
)  # fmt: skip
VERDICT_COLUMNS = (
    "tenant_id", "report_id", "line_id", "operation_id", "verdict", "cause", "operation_class",
    "reference", "their_minor", "our_minor", "currency", "exponent",
)  # fmt: skip
ROWS_AT_ONCE = 50_000


def pandas_decimal(statement: Path, operations: Path) -> int:
    """Exact amounts as Decimal objects, an outer merge."""
    import pandas as pd  # noqa: PLC0415 - each peer pays for its own import

    theirs = pd.read_csv(statement, dtype=str, usecols=["source_id", "gross"])
    theirs["minor"] = theirs["gross"].map(Decimal) * 100
    ours = pd.read_csv(operations, header=None, names=["source_id", "ours", "currency", "at"])
    met = theirs.merge(ours, on="source_id", how="outer", indicator=True)
    both = met[met["_merge"] == "both"]
    differs = (both["minor"] != both["ours"]).sum()
    assert differs > 0
    return int((met["_merge"] == "left_only").sum())


def polars_join(statement: Path, operations: Path) -> int:
    """Amounts as decimals of fixed scale, a full join."""
    import polars as pl  # noqa: PLC0415 - each peer pays for its own import

    theirs = pl.read_csv(
        statement, columns=["source_id", "gross"], schema_overrides={"gross": pl.String}
    )
    theirs = theirs.with_columns(pl.col("gross").str.to_decimal(scale=2).alias("theirs"))
    names = ["source_id", "ours", "currency", "at"]
    ours = pl.read_csv(operations, has_header=False, new_columns=names)
    met = theirs.join(ours, on="source_id", how="full")
    differs = met.filter(pl.col("theirs") * 100 != pl.col("ours")).height
    assert differs > 0
    return met.filter(pl.col("source_id_right").is_null()).height


def duckdb_join(statement: Path, operations: Path) -> int:
    """Both files read and joined inside the engine."""
    import duckdb  # noqa: PLC0415 - each peer pays for its own import

    [(missing, differs)] = duckdb.sql(
        f"""
        SELECT count(*) FILTER (WHERE ours.column0 IS NULL),
               count(*) FILTER (WHERE theirs.gross * 100 <> ours.column1)
        FROM read_csv('{statement}', types={{'gross': 'DECIMAL(18,2)'}}) theirs
        FULL JOIN read_csv('{operations}', header=false) ours ON ours.column0 = theirs.source_id
        """
    ).fetchall()
    assert differs > 0
    return int(missing)


PEERS = {
    "pandas with Decimal": pandas_decimal,
    "polars": polars_join,
    "DuckDB": duckdb_join,
}


def pandas_stored(statement: Path, db: Any, source_id: int) -> int:
    """Exact amounts as Decimal objects, an outer merge, and everything stored by COPY."""
    import pandas as pd  # noqa: PLC0415 - each peer pays for its own import

    theirs = pd.read_csv(statement, dtype=str)
    theirs["raw"] = statement.read_text().splitlines()[1:]
    for name in ("gross", "fee", "net"):
        theirs[f"{name}_minor"] = (theirs[name].map(Decimal) * 100).map(int)
    for name in ("created_utc", "available_on_utc"):
        theirs[name] = pd.to_datetime(theirs[name], utc=True)
    theirs["position"] = range(2, len(theirs) + 2)
    lines = pd.DataFrame({
        "tenant_id": 1, "statement_id": 1, "position": theirs["position"],
        "identity": "id:" + theirs["balance_transaction_id"],
        "provider_id": theirs["balance_transaction_id"],
        "references": '{"source":"' + theirs["source_id"] + '"}',
        "kind": theirs["reporting_category"], "operation_class": theirs["reporting_category"],
        "reference": theirs["source_id"], "amount_minor": theirs["gross_minor"],
        "currency": theirs["currency"].str.upper(), "exponent": 2,
        "fee_minor": theirs["fee_minor"], "net_minor": theirs["net_minor"],
        "occurred_at": theirs["created_utc"], "available_at": theirs["available_on_utc"],
        "status": "", "raw": theirs["raw"],
    })  # fmt: skip
    with db.transaction():
        _copied(db, "bare_line", LINE_COLUMNS, lines)
        db.execute("ANALYZE bare_line")
        ids = _table(db, pd, "SELECT id AS line_id, reference FROM bare_line")
        ours = _table(
            db, pd,
            "SELECT id AS operation_id, reference, amount_minor AS our_minor "
            f"FROM reliability_operation WHERE source_id = {source_id}",
        )  # fmt: skip
        met = (
            lines[["reference", "amount_minor"]]
            .merge(ids, on="reference")
            .merge(ours, on="reference", how="outer", indicator=True)
        )
        met["verdict"] = "matched"
        met.loc[met["amount_minor"] != met["our_minor"], "verdict"] = "amount_mismatch"
        met.loc[met["_merge"] == "left_only", "verdict"] = "missing"
        met.loc[met["_merge"] == "right_only", "verdict"] = "unexpected"
        verdicts = met.rename(columns={"amount_minor": "their_minor"}).assign(
            tenant_id=1, report_id=1, cause="", operation_class="charge", currency="EUR",
            exponent=2,
        )  # fmt: skip
        whole = ["line_id", "operation_id", "their_minor", "our_minor"]
        verdicts[whole] = verdicts[whole].astype("Int64")
        _copied(db, "bare_verdict", VERDICT_COLUMNS, verdicts)
    return int((met["verdict"] == "missing").sum())


def _table(db: Any, pd: Any, query: str) -> Any:
    cursor = db.execute(query)
    return pd.DataFrame(cursor.fetchall(), columns=[one.name for one in cursor.description])


def _copied(db: Any, table: str, columns: Sequence[str], frame: Any) -> None:
    named, blank = '", "'.join(columns), {"status", "cause"} & set(columns)
    command = (
        f'COPY {table} ("{named}") FROM STDIN (FORMAT csv, FORCE_NOT_NULL ({"".join(blank)}))'
    )
    with db.cursor() as cursor, cursor.copy(command) as copy:
        for begin in range(0, len(frame), ROWS_AT_ONCE):
            some = frame.iloc[begin : begin + ROWS_AT_ONCE]
            copy.write(some.to_csv(columns=list(columns), header=False, index=False))
