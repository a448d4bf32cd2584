"""Data frames that compare the same two files and count what is missing; nothing is stored."""

from decimal import Decimal
from pathlib import Path


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
