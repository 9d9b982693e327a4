"""Prints a recording of a made-up program in a format, of roughly so many bytes, in the shape in which that format's own program
writes it.

The program has 400 functions and 2,000 stacks of 6 to 30 frames, of which a sample shows one like the one before.
"""

import itertools
import json
import marshal
import random
import struct
import sys

FUNCTIONS = [(f"handler_{n}", f"/srv/app/module_{n % 40}.py", 10 + n * 7 % 900) for n in range(400)]
OUT = sys.stdout.buffer
chosen = random.Random(7)


def stack_of(number):
    rng = random.Random(number // 8)
    outer = [rng.randrange(400) for _ in range(rng.randrange(5, 25))]
    return outer + [random.Random(number).randrange(400) for _ in range(1 + number % 5)]


STACKS = [stack_of(number) for number in range(2000)]


def walk():
    """The numbers of stacks, forever."""
    at = 0
    while True:
        yield at
        at = (at + chosen.choice((0, 0, 1, 1, 2, 9, 97))) % len(STACKS)


def rows(size, row):
    """Prints rows until there are so many bytes."""
    written = 0
    for number, stack in enumerate(walk()):
        text = row(number, stack)
        text = text if isinstance(text, bytes) else text.encode()
        OUT.write(text)
        written += len(text)
        if written >= size:
            return


def listed(size, row):
    """Prints the members of a list of JSON."""
    rows(size, lambda number, stack: ("" if number == 0 else ",") + row(number, stack))


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def chrome_trace(size):
    def calls(number, stack):
        texts, start = [], number * 1000
        for depth, function in enumerate(STACKS[stack][:8]):
            name, file, line = FUNCTIONS[function]
            texts.append(compact({
                "pid": 7, "tid": 7, "ts": start + depth * 10.125, "ph": "X", "cat": "fee",
                "dur": 900 - depth * 25.5, "name": f"{name} ({file}:{line})",
            }))
        return ",".join(texts)

    OUT.write(b'{"traceEvents":[')
    listed(size, calls)
    OUT.write(b"]}")


def tree():
    """The calls of all stacks: parents by number from 1, which is the root, and the node of each stack."""
    nodes, known, leaves = [(0, 0)], {}, []
    for stack in STACKS:
        at = 1
        for function in stack:
            key = (at, function)
            if key not in known:
                nodes.append(key)
                known[key] = len(nodes)
            at = known[key]
        leaves.append(at)
    return nodes, leaves


def call_frame(function):
    name, file, line = FUNCTIONS[function]
    return {"functionName": name, "scriptId": "80", "url": f"file://{file}", "lineNumber": line, "columnNumber": 4}


def cpuprofile(size):
    nodes, leaves = tree()
    children = {}
    for number, (parent, _) in enumerate(nodes, 1):
        children.setdefault(parent, []).append(number)
    listed_nodes = [
        {"id": number, "callFrame": call_frame(function), "hitCount": 1, "children": children.get(number, [])}
        for number, (_, function) in enumerate(nodes, 1)
    ]
    OUT.write(b'{"nodes":' + compact(listed_nodes).encode() + b',"startTime":1000,"endTime":900000000,"samples":[')
    count = size // 10
    samples = [str(leaves[stack]) for stack in itertools.islice(walk(), count)]
    OUT.write(",".join(samples).encode() + b'],"timeDeltas":[')
    OUT.write(",".join(str(120 + number % 13) for number in range(count)).encode() + b"]}")


def heapprofile(size):
    nodes, leaves = tree()
    made = [
        {"callFrame": call_frame(function), "selfSize": 64 * number, "id": number, "children": []}
        for number, (_, function) in enumerate(nodes, 1)
    ]
    for node, (parent, _) in zip(made[1:], nodes[1:]):
        made[parent - 1]["children"].append(node)
    OUT.write(b'{"head":' + compact(made[0]).encode() + b',"samples":[')
    listed(size, lambda number, stack: compact(
        {"size": 16 + number % 64 * 8, "nodeId": leaves[stack], "ordinal": number + 1.5}))
    OUT.write(b"]}")


def pstats(size):
    functions = [(file, line + number, f"{name}_{number}") for number in range(20) for name, file, line in FUNCTIONS]
    statistics = {}
    for number, function in enumerate(functions):
        calling = chosen.sample(functions, size // 60 // len(functions))
        callers = {caller: (number + 1, number + 1, 0.5 + number / 64, 1.25 + number / 8) for caller in calling}
        calls = (number + 1) * len(callers)
        statistics[function] = (calls, calls, number / 2, number * 2.0, callers)
    # As `pstats.dump_stats` writes it. Keys are made anew for each caller, but their texts are not.
    OUT.write(marshal.dumps({key: (*sums, {(*caller,): row for caller, row in callers.items()}) for key, (*sums, callers) in statistics.items()}))


def callgrind(size):
    """Parts of 400 functions, as `--dump-every-bb` asks for them."""

    def function(number, stack):
        name, file, line = FUNCTIONS[number % 400]
        places = f"fl=({number % 400 + 1})%s\nfn=({number % 400 + 1})%s"
        lines = ["" if number % 400 else f"part: {number // 400 + 1}\npositions: line\nevents: Ir Dr Dw I1mr D1mr\n"]
        lines.append(places % ((f" {file}", f" {name}") if number < 400 else ("", "")))
        lines += [f"{line} {number % 50 + 3} {number % 7} 2"]
        lines += [f"+{at} {number % 50 + at} {3 * at} {at} 1 2" for at in range(1, 12)]
        if number > 400:
            for called in STACKS[stack][:4]:
                lines.append(f"cfi=({called + 1})\ncfn=({called + 1})\ncalls={number % 9 + 1} 10\n-1 {number % 700} 41 7")
        return "\n".join(lines) + "\n\n"

    OUT.write(b"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./work\n\n")
    rows(size, function)


def gecko(size):
    nodes, leaves = tree()
    strings = ["(root)"] + [f"{name} ({file}:{line})" for name, file, line in FUNCTIONS]
    frames = [[number, False, 0, None, None, None, 0, 0] for number in range(len(strings))]
    stacks = [[None, 0]] + [[parent - 1, function + 1] for parent, function in nodes[1:]]
    frame_schema = ("location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category", "subcategory")
    thread = {
        "processType": "default", "name": "GeckoMain", "pid": 7, "tid": 7, "registerTime": 0, "unregisterTime": None,
        "markers": {"schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5}, "data": []},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": stacks},
        "frameTable": {"schema": {name: at for at, name in enumerate(frame_schema)}, "data": frames},
        "stringTable": strings,
    }
    categories = [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]
    meta = {"version": 31, "interval": 1, "startTime": 1.7e12, "processType": 0, "categories": categories, "product": "work",
            "stackwalk": 1, "markerSchema": []}
    head = compact({"libs": [], "meta": meta, "processes": [], "pausedRanges": []})[:-1] + ',"threads":['
    head += compact(thread)[:-1] + ',"samples":{"schema":{"stack":0,"time":1,"eventDelay":2},"data":['
    OUT.write(head.encode())
    listed(size, lambda number, stack: f"[{leaves[stack] - 1},{number + number % 7 / 8},0]")
    OUT.write(b"]}}]}")


def gperftools(size):
    OUT.write(struct.pack("<5Q", 0, 3, 0, 10000, 0))

    def sample(_, stack):
        places = [0x401000 + function * 64 for function in reversed(STACKS[stack])]
        return struct.pack(f"<{2 + len(places)}Q", 1, len(places), *places)

    rows(size, sample)
    OUT.write(struct.pack("<3Q", 0, 1, 0) + b"00400000-00500000 r-xp 00000000 08:01 5 /srv/app/work\n")


def pprof_text(size):
    def record(number, stack):
        places = [0x401000 + function * 64 for function in reversed(STACKS[stack])]
        lines = [f"{number % 9 + 1}: {number % 9 * 512 + 512} [9: 4608] @ " + " ".join(map(hex, places))]
        for place in places:
            name, file, line = FUNCTIONS[(place - 0x401000) // 64]
            lines.append(f"#\t{place:#x}\tmain.{name}+0x50\t{file}:{line}")
        return "\n".join(lines) + "\n\n"

    OUT.write(b"heap profile: 5500: 5327680 [8500: 7048000] @ heap/8192\n")
    rows(size, record)


def pyinstrument(size):
    def record(_, stack):
        frames = ["MainThread\0<thread>\x00007"]
        frames += [f"{name}\0{file}\x00{line}\x01l{line + 3}" for name, file, line in map(FUNCTIONS.__getitem__, STACKS[stack])]
        return json.dumps([frames, 0.0010111020019394346])

    OUT.write(b'{"start_time": 1795938142.8, "duration": 60.5, "min_interval": 0.001, "max_interval": 0.001, "sample_count": 1000,'
              b' "start_call_stack": [], "target_description": "work.py", "cpu_time": 50.5, "sys_path": [], "sys_prefixes": [],'
              b' "frame_records": [')
    listed(size, record)
    OUT.write(b"]}")


def scalene(size):
    def record(_, stack):
        frames = [{"display_name": name, "filename_or_module": file, "ip": None, "kind": "py", "line": line, "offset": None}
                  for name, file, line in map(FUNCTIONS.__getitem__, STACKS[stack])]
        return compact([frames, 3])

    OUT.write(b'{"alloc_samples":0,"args":["work.py"],"elapsed_time_sec":60.5,"files":{},"program":"work.py","combined_stacks":[')
    listed(size, record)
    OUT.write(b']}')


def stackprof(size):
    base = 140047677400000
    frames = {str(base + 40 * number): {"name": name, "file": file, "line": line, "total_samples": 60, "samples": 3}
              for number, (name, file, line) in enumerate(FUNCTIONS)}
    OUT.write(b'{"version":1.2,"mode":"wall","interval":1000,"samples":1000,"gc_samples":0,"missed_samples":0,"metadata":{},"frames":'
              + compact(frames).encode() + b',"raw":[')
    count = itertools.count()

    def sample(_, stack):
        next(count)
        return f"{len(STACKS[stack])}," + ",".join(str(base + 40 * function) for function in STACKS[stack]) + ",1"

    listed(size, sample)
    count = next(count)
    OUT.write(b'],"raw_sample_timestamps":[' + ",".join(str(60000000 + at * 1000) for at in range(count)).encode())
    OUT.write(b'],"raw_timestamp_deltas":[' + ",".join("1000" for _ in range(count)).encode() + b"]}")


def rbspy(size):
    def sample(number, stack):
        trace = [{"name": name, "relative_path": file[9:], "absolute_path": file, "lineno": line}
                 for name, file, line in map(FUNCTIONS.__getitem__, reversed(STACKS[stack]))]
        time = {"secs_since_epoch": 1700000000 + number // 100, "nanos_since_epoch": number % 100 * 10000000}
        return compact({"trace": trace, "pid": 7, "thread_id": 7, "time": time, "on_cpu": None}) + "\n"

    OUT.write(b'rbspy02\n{"sample_rate":100,"rbspy_version":"0.55.0","start_time":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}\n')
    rows(size, sample)


def dhat(size):
    def point(number, stack):
        return (f'{{"tb":{number % 900 * 16},"tbk":10\n  ,"tl":8284674\n  ,"mb":10000,"mbk":10\n  ,"gb":10000,"gbk":10\n'
                f'  ,"eb":9000,"ebk":9\n  ,"rb":0,"wb":5000\n  ,"fs":{compact([1 + at for at in reversed(STACKS[stack])])}\n  }}\n ')

    OUT.write(b'{"dhatFileVersion":2\n,"mode":"heap","verb":"Allocated"\n,"bklt":true,"bkacc":true\n,"tu":"instrs","Mtu":"Minstr"\n'
              b',"tuth":500\n,"cmd":"./work"\n,"pid":7\n,"te":974953\n,"tg":928978\n,"pps":\n [')
    listed(size, point)
    names = ["[root]"] + [f"{0x401000 + 64 * at:#X}: {name} ({file}:{line})" for at, (name, file, line) in enumerate(FUNCTIONS)]
    OUT.write(b']\n,"ftbl":\n ' + json.dumps(names).encode() + b"\n}\n")


def xdebug_trace(size):
    def calls(number, stack):
        lines, time = [], number * 0.01
        for depth, function in enumerate(STACKS[stack][:6], 2):
            name, file, line = FUNCTIONS[function]
            lines.append(f"{depth}\t{number * 6 + depth}\t0\t{time + depth * 1e-4:.6f}\t398720\t{name}\t1\t\t{file}\t{line}\t1\t2000")
        for depth in range(len(lines) + 1, 1, -1):
            lines.append(f"{depth}\t{number * 6 + depth}\t1\t{time + 0.005 + (8 - depth) * 1e-4:.6f}\t398760")
        return "\n".join(lines) + "\n"

    OUT.write(b"Version: 3.2.0\nFile format: 4\nTRACE START [2026-11-29 01:17:42.168235]\n"
              b"1\t0\t0\t0.000004\t398720\t{main}\t1\t\t/srv/app/work.php\t0\t0\n")
    rows(size, calls)


def austin(size):
    def sample(_, stack):
        frames = ";".join(f"{file}:{name}:{line}" for name, file, line in map(FUNCTIONS.__getitem__, STACKS[stack]))
        return f"P7;T0:7;{frames} 10092\n"

    OUT.write(b"# austin: 3.7.0\n# interval: 10000\n# mode: wall\n\n")
    rows(size, sample)


def number_of(value):
    """A number of MOJO: six bits and the sign, then seven bits a byte."""
    out = bytearray([value & 0x3F])
    value >>= 6
    while value:
        out[-1] |= 0x80
        out.append(value & 0x7F)
        value >>= 7
    return bytes(out)


def mojo(size):
    defined = set()

    def sample(_, stack):
        out = [b"\x02" + number_of(7) + number_of(0) + b"7f3a5c9b\0"]
        for function in STACKS[stack]:
            name, file, line = FUNCTIONS[function]
            place, naming, frame = (number_of(0x7F3A5C000000 + key) for key in (function % 40, 1000 + function, 5000 + function))
            if function not in defined:
                defined.add(function)
                out.append(b"\x0b" + place + file.encode() + b"\0\x0b" + naming + name.encode() + b"\0")
                out.append(b"\x03" + frame + place + naming + number_of(line) + number_of(line) + number_of(5) + number_of(9))
            out.append(b"\x05" + frame)
        return b"".join(out) + b"\x09" + number_of(10092)

    OUT.write(b"MOJ" + number_of(3) + b"\x01mode\0wall\0")
    rows(size, sample)


def perf_script(size):
    def sample(number, stack):
        lines = [f"work  4242/4243  [00{number % 4}] {1000 + number / 1000:.6f}:   10101010 cpu-clock:u: "]
        lines += [f"\t{0x401000 + 64 * function:16x} {FUNCTIONS[function][0]}+0x1c (/srv/app/work)" for function in reversed(STACKS[stack])]
        return "\n".join(lines) + "\n\n"

    rows(size, sample)


globals()[sys.argv[1].replace("-", "_")](int(sys.argv[2]))
