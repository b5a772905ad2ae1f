"""Programs that take turns: each does its work once for every line it gets, and answers with JSON."""
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path


class Side:
    """One of the programs. It says that it is ready before its first turn; `wait=False` leaves that to `get_ready`."""

    def __init__(self, name, command, wait=True, **environment):
        self.name = name
        command = [str(word) for word in command]
        print("  " + shlex.join(Path(word).name if "/" in word else word for word in command), file=sys.stderr)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **environment))
        if wait:
            self.get_ready()

    def get_ready(self):
        self.ready = self.answer()
        return self.ready

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} failed with {self.process.wait()}")
        return line

    def turn(self, line="go"):
        # Threads of a program that has just had its turn may still be spinning.
        time.sleep(0.3)
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return json.loads(self.answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
