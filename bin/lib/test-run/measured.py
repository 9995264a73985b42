"""Runs a program and says, in the words of the shell's `times` and on descriptor 3, what it and its children have taken.

A shell counts whom it or its children waited for. Whoever outlives their parent, as the pages of a browser do, is waited
for by the machine's first process and counts nowhere: this process takes that place.

Usage: python3 measured.py PROGRAM ARGUMENTS... 3>TIMES
"""

import ctypes
import os
import resource
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
# For those that end with the program; what stays for good is not waited for.
LEFT_SECONDS = 5

ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
close_times = [(os.POSIX_SPAWN_CLOSE, 3)]
program = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=close_times)
ended, status = os.wait()
while ended != program:
    ended, status = os.wait()
code = os.waitstatus_to_exitcode(status)

deadline = time.monotonic() + LEFT_SECONDS
try:
    while time.monotonic() < deadline:
        if os.waitpid(-1, os.WNOHANG)[0] == 0:
            time.sleep(0.02)
except ChildProcessError:
    pass

taken = resource.getrusage(resource.RUSAGE_CHILDREN)
os.write(3, f"0m0s 0m0s\n0m{taken.ru_utime:.2f}s 0m{taken.ru_stime:.2f}s\n".encode())
sys.exit(code if code >= 0 else 128 - code)
