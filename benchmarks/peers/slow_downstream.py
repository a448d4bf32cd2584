"""A downstream that answers every request after 20 ms: ``python -m … PORT``."""

import asyncio
import sys

SECONDS = 0.02
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def answer(asked: asyncio.StreamReader, told: asyncio.StreamWriter) -> None:
    await asked.readuntil(b"\r\n\r\n")
    await asyncio.sleep(SECONDS)
    told.write(ANSWER)
    await told.drain()
    told.close()


async def serve(port: int) -> None:
    async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=200) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
