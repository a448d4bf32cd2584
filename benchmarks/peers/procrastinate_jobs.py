"""procrastinate: jobs in PostgreSQL, finished by id; asynchronous worker, its default way."""

import os
import sys

import procrastinate
import psycopg_pool

from benchmarks.peers.effect import INSERT

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=os.environ["DATABASE_URL"], max_size=8),
    import_paths=["benchmarks.peers.procrastinate_jobs"],
)
_pool: list[psycopg_pool.AsyncConnectionPool] = []


@app.task(name="plain")
async def plain(key: str) -> None:
    if not _pool:
        _pool.append(
            psycopg_pool.AsyncConnectionPool(
                os.environ["DATABASE_URL"], min_size=1, max_size=8, open=False,
                kwargs={"autocommit": True, "prepare_threshold": 1},
            )
        )  # fmt: skip
        await _pool[0].open()
    async with _pool[0].connection() as connection:
        await connection.execute(INSERT, [key])


async def work(concurrency: int) -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=concurrency, fetch_job_polling_interval=5)


if __name__ == "__main__":
    import asyncio

    asyncio.run(work(int(sys.argv[1])))
