"""Asks DuckDB: each argument is a statement. Prints each row of the last one's answer as JSON, then the seconds that it took."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import duckdb

connection = duckdb.connect()
for statement in sys.argv[1:-1]:
    connection.execute(statement)
begin = time.perf_counter()
answer = connection.execute(sys.argv[-1])
rows = answer.fetchall()
seconds = time.perf_counter() - begin
names = [column[0] for column in answer.description]
for row in rows:
    print(json.dumps(dict(zip(names, row)), default=str))
print(json.dumps({"seconds": seconds}))
