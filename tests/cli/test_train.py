"""halftone train: what it learns is used, the same bits come again, and what it refuses. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import pathlib
import unittest

from cli import run, Cli


class Train(Cli):
    def train(self, *options):
        status, out, err = run("train", self.a, *options)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_a_policy_is_learned_and_used(self):
        policy, history = self.path("p.safetensors"), self.path("h.csv")
        report = json.loads(self.train("-o", policy, "--history", history, "--episodes", "20", "--json"))
        self.assertEqual((report["backend"], report["options"]["backend"]), ("cpu", "auto"))
        self.assertEqual((report["outcome"], report["options"]["episodes"], report["missed"]), ("finished", 20, 0))
        self.assertEqual(len(pathlib.Path(history).read_text().splitlines()), report["episodes"] + 1)
        solved = self.solves(self.a, "--policy", f"learned:{policy}")
        self.assertIn(f"{report['episodes']} episodes on" if report["chosen"] == "learned" else report["contest"], solved["policy_chosen"])
        self.assertEqual(report["chosen"], json.loads(run("info", policy, "--json")[1])["chosen"])
        shown = self.train("-o", policy, "--episodes", "2")
        self.assertIn("FP64", shown)
        self.assertIn("2 were asked for", shown)  # eight end at once
        self.assertIn("of it for the competition", shown)
        self.assertEqual(self.train("-o", policy, "--episodes", "2", "--quiet"), "")

    def test_a_policy_for_whole_matrices_is_learned_and_used(self):
        policy = self.path("p.safetensors")
        windows = ["-o", policy, "--state", "features"]
        report = json.loads(self.train(*windows, "--episodes", "20", "--json"))
        self.assertEqual((report["options"]["reward"], report["missed"]), ("time", 0))
        self.assertTrue(report["options"]["actions"].startswith("f64"))
        chosen = self.solves(self.a, "--policy", f"learned:{policy}")["policy_chosen"]
        self.assertIn(f"learned in {report['episodes']} episodes" if report["chosen"] == "learned" else report["chosen"], chosen)
        self.assertIn("by the model", report["contest"])
        self.assertIn("modelled time", self.train(*windows, "--episodes", "2"))
        self.fails("use --reward auto", "train", self.a, *windows, "--reward", "paper")

    def test_the_librarys_own_policy(self):
        for name in ("learned", "learned:universal"):
            report = self.solves(self.a, "--policy", name)
            self.assertEqual(report["policy"], "learned:universal")
            self.assertIn("a network says, learned in", report["policy_chosen"])

    def test_the_same_seed_gives_the_same_bytes_resumed_or_not(self):
        whole, parts, state = self.path("whole"), self.path("parts"), self.path("state")
        self.train("-o", whole, "--episodes", "60", "--threads", "1")
        self.train("-o", parts, "--episodes", "20", "--save", state)
        self.train("-o", parts, "--episodes", "60", "--resume", state)
        self.assertEqual(pathlib.Path(whole).read_bytes(), pathlib.Path(parts).read_bytes())

    def test_refusals(self):
        policy = self.path("p.safetensors")
        self.fails("add -o", "train", self.a)
        self.fails("needs a matrix file", "train", "-o", policy)
        self.fails("did you mean '--episodes'", "train", self.a, "-o", policy, "--episode", "3")
        self.fails("not the state of a training", "train", self.a, "-o", policy, "--resume", self.a)
        for backend in ("cuda:", "cuda:x", "cuda:-1"):
            self.fails(["by its number from 0", "cuda:0", backend], "train", self.a, "-o", policy, "--backend", backend)
        for actions in ("f64", "f32,f64", "f64,f31", "f64,f32@0", "f64,budget"):
            self.fails(["budget:THETA", "@ITERATIONS", f"'{actions}'"], "train", self.a, "-o", policy, "--state", "features", "--actions", actions)
        for without_effect in (("--reward", "paper", "--judge", "time"), ("--compete", "no", "--judge", "model"), ("--actions", "f64,f32"), ("--credit", "shared")):
            self.fails("leave", "train", self.a, "-o", policy, *without_effect)
        self.fails("lanes", "train", self.a, "-o", policy, "--lanes", "9", "--update", "8")
        self.fails("--threads takes", "train", self.a, "-o", policy, "--threads", "many")
        self.assertFalse(os.path.exists(policy))

    def test_training_tells_why_a_matrix_cannot_be_solved(self):
        a = self.made("hidden.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 1\n2 1 2\n2 2 1\n3 2 1\n3 3 1\n")
        for more in ((), ("--state", "features", "--reward", "time")):
            self.fails("negative eigenvalue", "train", a, "-o", self.path("p"), "--episodes", "1", *more)


if __name__ == "__main__":
    unittest.main()
