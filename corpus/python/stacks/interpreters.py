"""Stops in an interpreter of its own, on the main thread and on another one, and prints the stack there. The reader answers each
stack with a line."""

import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = '''
import os, sys

def stop(construct):
    frame = sys._getframe()
    lines = ["= " + construct]
    while frame is not None:
        code = frame.f_code
        name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
        # This frame waits in the line that reads.
        line = code.co_firstlineno + 11 if code.co_name == "stop" else frame.f_lineno
        lines.append("%s\\t%s\\t%s" % (name, code.co_filename, line))
        frame = frame.f_back
    os.write(1, ("\\n".join(lines + ["."]) + "\\n").encode())
    os.read(0, 1)

def called():
    stop("CONSTRUCT")

called()
'''


def run(construct):
    interpreters.run_string(interpreters.create(), CODE.replace("CONSTRUCT", construct))


run("an interpreter on the main thread")
thread = threading.Thread(target=run, args=("an interpreter on another thread",))
thread.start()
thread.join()
