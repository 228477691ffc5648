"""Interrupts: what runs ends soon, and keeps its best or leaves nothing. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from cli import HALFTONE, run, Cli


class Interrupts(Cli):
    def start_long_solve(self, *more):
        """A solve that takes long, with its progress on a terminal. Returns the process and the terminal's other end."""
        a = self.dir / "long.mtx"
        if not a.exists():
            self.assertEqual(run("gen", "stencil2d", "--size", "500", "-o", a)[0], 0)
        master, slave = pty.openpty()
        process = subprocess.Popen([HALFTONE, "solve", str(a), "--precond", "none", "-b", "random:1", *map(str, more)], stdout=subprocess.PIPE,
                                   stderr=slave, text=True)
        os.close(slave)
        return process, master

    def wait_for_progress(self, master, seconds=60, word=b"iterations"):
        seen, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 4096)
                if word in seen:
                    return seen
        self.fail(f"no progress was seen: {seen}")

    def test_the_first_interrupt_ends_the_solve_with_the_best_iterate(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            x = self.path("x.npy")
            process, master = self.start_long_solve("--json", "-o", x)
            seen = self.wait_for_progress(master)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            os.close(master)
            report = json.loads(out)
            self.assertEqual((process.returncode, report["outcome"]), (1, "interrupted"), out)
            self.assertGreater(report["iterations"], 0)
            self.assertTrue(x.exists())
            self.assertIn(b"[", seen)

    def test_an_interrupt_ends_a_training_soon_and_keeps_what_was_learned(self):
        """While it learns, and while what was learned competes, by a clock that is given two seconds."""
        a = self.path("t.npz")
        self.assertEqual(run("gen", "stencil2d", "--size", "100", "-o", a)[0], 0)  # solves of about ten milliseconds
        for word, more in ((b"of 100000  return", ("--episodes", "100000")), (b"competing", ("--episodes", "2", "--judge", "time"))):
            policy, state, master_slave = self.path("p.safetensors"), self.path("state"), pty.openpty()
            process = subprocess.Popen([HALFTONE, "train", str(a), "-o", str(policy), "--save", str(state), *more], stdout=subprocess.PIPE,
                                       stderr=master_slave[1], text=True)
            os.close(master_slave[1])
            self.wait_for_progress(master_slave[0], word=word)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
            os.close(master_slave[0])
            self.assertEqual(process.returncode, 1, out)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertIn("interrupted after", out)
            self.assertIn("judged       no", out)
            told = json.loads(run("info", policy, "--json")[1])
            self.assertEqual((told["chosen"], told["contest"]), ("learned", "none: the training was interrupted before it was judged"))
            self.assertEqual(self.solves(a, "--policy", f"learned:{policy}")["outcome"], "converged")
            status, out, err = run("train", a, "-o", policy, "--resume", state, "--episodes", "1", "--json")
            self.assertEqual((status, json.loads(out)["judged"]), (0, 1), err)

    def test_a_signal_that_comes_twice_counts_once(self):
        """As from `timeout`, which signals the command and its group."""
        for wait in (0, 0.02):  # the second while the first is handled, and after that
            x = self.path("x.npy")
            process, master = self.start_long_solve("--json", "-o", x)
            self.wait_for_progress(master)
            process.send_signal(signal.SIGTERM)
            time.sleep(wait)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
            os.close(master)
            self.assertEqual((process.returncode, json.loads(out)["outcome"], x.exists()), (1, "interrupted", True), out)

    def test_the_second_interrupt_ends_the_command(self):
        """While it waits for input nothing else can end it first."""
        process = subprocess.Popen([HALFTONE, "solve", "-b", "-", str(self.a)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (1, 130))

    def test_an_interrupt_ends_what_is_no_solve(self):
        """Reading, also from a pipe that nobody writes to; generating; writing. Status 1, a sentence, and no file is left."""
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        before = set(os.listdir(self.dir))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for args in (("solve", pipe), ("report", pipe, "-o", "r.html"), ("solve", "-"),
                         ("gen", "stencil3d", "--points", "7", "--size", "300", "-o", "never.mtx.gz")):
                process = subprocess.Popen([HALFTONE, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, cwd=self.dir)
                time.sleep(0.7)
                process.send_signal(number)
                process.wait(timeout=60)
                err = process.stderr.read()
                process.communicate()
                self.assertEqual((process.returncode, err), (1, "halftone: interrupted\n"), args)
                self.assertEqual(set(os.listdir(self.dir)), before)

    def test_an_interrupt_while_writing_leaves_no_file(self):
        before = set(os.listdir(self.dir))
        process = subprocess.Popen([HALFTONE, "gen", "stencil3d", "--size", "80", "-o", "w.mtx.gz"], stderr=subprocess.PIPE, text=True,
                                   cwd=self.dir)
        end = time.monotonic() + 60  # output_check makes such a file too, and removes it
        while time.monotonic() < end and not any(n.endswith(".tmp") and (self.dir / n).stat().st_size > 0
                                                 for n in os.listdir(self.dir) if (self.dir / n).exists()):
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (1, "halftone: interrupted\n"))
        self.assertEqual(set(os.listdir(self.dir)), before)

    def test_no_progress_without_a_terminal_or_when_quiet(self):
        self.assertEqual(run("solve", self.a)[2], "")
        process, master = self.start_long_solve("--quiet", "--max-iterations", "200")
        process.communicate(timeout=60)
        seen = b""
        while select.select([master], [], [], 0.2)[0]:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        os.close(master)
        self.assertNotIn(b"iterations  ", seen)


if __name__ == "__main__":
    unittest.main()
