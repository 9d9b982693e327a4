"""A site whose pages take CPU time and wait, for servers that speak ASGI."""

import asyncio


def compute(units):
    return sum(number * number for number in range(units))


async def page():
    await asyncio.sleep(0.001)
    return str(compute(20_000))


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    text = await asyncio.ensure_future(page())
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
