"""The Python client of the Model Context Protocol: calls tools of a program, and prints what they answer as JSON.

    mcp.py PROGRAM ARGUMENT... -- NAME ARGUMENTS [NAME ARGUMENTS]...

The client checks each answer against the schema that the tool states.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program, calls):
    parameters = StdioServerParameters(command=program[0], args=program[1:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        answers = []
        for name, arguments in zip(calls[::2], calls[1::2]):
            answer = await session.call_tool(name, json.loads(arguments))
            answers.append(answer.model_dump(mode="json", by_alias=True))
        dumped = begun.model_dump(mode="json", by_alias=True)
        tools = [tool.model_dump(mode="json", by_alias=True) for tool in tools]
        print(json.dumps({"protocol": dumped["protocolVersion"], "tools": tools, "answers": answers}))


said = sys.argv[1:]
end = said.index("--")
asyncio.run(main(said[:end], said[end + 1 :]))
