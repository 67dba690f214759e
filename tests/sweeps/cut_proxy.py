"""``python cut_proxy.py PORT``: passes connections on to a port of this machine; SIGUSR1 cuts all that are open."""

import asyncio
import signal
import sys
from contextlib import suppress


async def main(port: int) -> None:
    writers: set[asyncio.StreamWriter] = set()

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.update((writer, there_writer))
        await asyncio.gather(pass_on(reader, there_writer), pass_on(there_reader, writer))

    def cut() -> None:
        for writer in writers:
            writer.transport.abort()
        writers.clear()

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, cut)
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
