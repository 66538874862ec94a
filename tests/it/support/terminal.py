"""A terminal for a program: argv is the steps, one a line, and then the program and its arguments.

    see TEXT        wait until the screen, drawn anew, has TEXT
    size ROWS COLS  resize
    key KEY         type
    both KEY ROWS COLS  type and resize at once
    tell WORD       say WORD on stderr
    signal N        send a signal
    end CODE        wait for the end with this code, and for a terminal that is as it was before
"""

import fcntl
import itertools
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE = 100  # seconds; generous, since no test asserts speed
steps, program = sys.argv[1].split("\n"), sys.argv[2:]

master, slave = pty.openpty()
size = [24, 80]
output = b""


def resize(rows, columns):
    size[:] = [rows, columns]
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read(seconds):
    global output
    if select.select([master], [], [], seconds)[0]:
        try:
            output += os.read(master, 65536)
        except OSError:  # nobody has the other side open any more
            return False
    return True


def plain(since):
    """What is drawn, without colours; what stands elsewhere on the screen stays apart."""
    text = output[since:].decode("utf-8", "replace")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text)


def see(text):
    deadline = time.monotonic() + PATIENCE
    rows, columns = size
    for attempt in itertools.count(1):
        if time.monotonic() > deadline:
            break
        # Only differences are drawn; a resize has it all drawn anew.
        since = len(output)
        resize(rows, columns + attempt % 2)
        quiet = time.monotonic() + 0.5
        while time.monotonic() < quiet:
            read(0.05)
            if text in plain(since):
                return
    sys.exit(f"never saw {text!r}; the last was {plain(max(0, len(output) - 4000))}")


resize(*size)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.close(master)
    os.login_tty(slave) if hasattr(os, "login_tty") else (
        os.setsid(), fcntl.ioctl(slave, termios.TIOCSCTTY, 0), [os.dup2(slave, fd) for fd in (0, 1, 2)]
    )
    os.execv(program[0], program)

for step in steps:
    word, _, rest = step.partition(" ")
    if word == "see":
        see(rest)
    elif word == "size":
        resize(*map(int, rest.split()))
        read(0.2)
    elif word == "key":
        os.write(master, rest.encode())
    elif word == "both":
        key, rows, columns = rest.split()
        read(0.2)
        os.write(master, key.encode())
        resize(int(rows), int(columns))
    elif word == "tell":
        print(rest, file=sys.stderr, flush=True)
    elif word == "signal":
        os.kill(child, int(rest))
    elif word == "end":
        deadline = time.monotonic() + PATIENCE
        ended = 0
        while not ended:
            if time.monotonic() > deadline:
                sys.exit("it does not end")
            read(0.05)
            ended, status = os.waitpid(child, os.WNOHANG)
        while select.select([master], [], [], 0.2)[0] and read(0):
            pass
        if os.waitstatus_to_exitcode(status) != int(rest):
            sys.exit(f"ended with {os.waitstatus_to_exitcode(status)}: {plain(max(0, len(output) - 2000))}")
        if output.count(b"\x1b[?1049h") != 1 or output.rfind(b"\x1b[?1049l") < output.rfind(b"\x1b[?1049h"):
            sys.exit("it did not leave the alternate screen")
        if output.rfind(b"\x1b[?25h") < output.rfind(b"\x1b[?25l"):
            sys.exit("the cursor is hidden")
        if termios.tcgetattr(slave) != before:
            sys.exit("the terminal is not as it was")
