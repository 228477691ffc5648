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
        self.assertIn("2 episodes asked for", shown)  # eight end at once
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

    def test_times_are_of_this_run_and_add_up(self):
        policy, state = self.path("p.safetensors"), self.path("state")
        for more in ([], ["--state", "features"]):
            first = json.loads(self.train("-o", policy, "--episodes", "20", "--save", state, "--json", *more))
            second = json.loads(self.train("-o", policy, "--episodes", "60", "--resume", state, "--json", *more))
            self.assertEqual((first["episodes_before"], second["episodes_before"]), (0, first["episodes"]))
            self.assertGreater(second["episodes"], first["episodes"])
            for report in (first, second):
                parts = [report[f"time_{part}_s"] for part in ("prepare", "rollout", "update", "judge")]
                self.assertLessEqual(sum(parts), report["time_s"])
                self.assertGreater(min(parts), 0)
                self.assertLessEqual(report["time_contest_s"], report["time_judge_s"])
                self.assertEqual(report["solves"], 2 if more else 1)
        shown = self.train("-o", policy, "--episodes", "80", "--resume", state, "--state", "features")
        self.assertIn("20 of them before this run", shown)
        self.assertIn("in this run: ", shown)
        self.assertIn(" in 2 solves, and ", shown)

    def test_a_state_tells_of_itself(self):
        policy, state = self.path("p.safetensors"), self.path("state")
        self.train("-o", policy, "--episodes", "2", "--seed", "7", "--learning-rate", "1e-3", "--save", state)
        about = json.loads(run("info", state, "--json")[1])
        self.assertEqual((about["kind"], about["seed"], about["trained_on"], about["options"]), ("tiles", "7", "a.mtx", "--seed 7 --learning-rate 0.001"))
        shown = run("info", state)[1]
        self.assertIn(f"halftone train a.mtx {about['options']} --resume {state}", shown)
        self.fails([str(state), "had --seed 7 --learning-rate 0.001, and this one has the usual options: give the same options"], "train", self.a, "-o", policy, "--resume", state)
        self.fails("and this one has --seed 8 --learning-rate 0.001:", "train", self.a, "-o", policy, "--resume", state, "--seed", "8", "--learning-rate", "1e-3")
        other, same_name = self.path("b.mtx"), self.dir / "other" / "a.mtx"
        same_name.parent.mkdir()
        run("gen", "stencil2d", "--size", "12", "--coefficients", "lognormal", "--seed", "4", "-o", other)
        same_name.write_bytes(other.read_bytes())
        for matrix, words in ((other, "was on a.mtx, and this one is on b.mtx: give the same matrices"), (same_name, "was on a.mtx, and that has other entries now")):
            self.fails([str(state), words], "train", matrix, "-o", policy, "--resume", state, *about["options"].split())
        self.train("-o", policy, "--episodes", "20", *about["options"].split(), "--resume", state)
        self.fails("only with a matrix", "info", state, "--steps", "3")
        with open(state, "rb") as piped:
            self.assertEqual(run("train", self.a, "-o", policy, "--episodes", "1", *about["options"].split(), "--resume", "-", "--quiet", stdin=piped)[0::2], (0, ""))
        self.fails("only one of", "train", "-", "-o", policy, "--resume", "-")
        whole = state.read_bytes()
        for bytes_, words in ((whole[:-1], [f"{len(whole)} bytes", f"found {len(whole) - 1}"]), (whole[:100], "cut short"), (whole[:900] + bytes([whole[900] ^ 1]) + whole[901:], "checksum"),
                              (whole[:14] + b"3" + whole[15:], "another version")):
            damaged = self.path("damaged")
            damaged.write_bytes(bytes_)
            for command in (["info", damaged], ["train", self.a, "-o", policy, "--resume", damaged]):
                self.fails([str(damaged), *([words] if isinstance(words, str) else words)], *command)

    def test_a_matrix_is_given_once(self):
        link, policy = self.path("link.mtx"), self.path("p.safetensors")
        link.symlink_to(self.a)
        copy, converted = self.made("copy.mtx", self.a.read_text()), self.path("copy.npz")
        run("convert", self.a, "-o", converted)
        for other in (self.a, link, self.a.parent / "." / self.a.name, copy, converted):
            self.fails([str(self.a), str(other), "give each matrix once"], "train", self.a, other, "-o", policy)
        self.fails("only one of the matrices", "train", "-", "-", "-o", policy)

    def test_refusals(self):
        policy = self.path("p.safetensors")
        self.fails("add -o", "train", self.a)
        self.fails("needs a matrix file", "train", "-o", policy)
        self.fails("did you mean '--episodes'", "train", self.a, "-o", policy, "--episode", "3")
        self.fails([str(self.a), "expected the state of a training"], "train", self.a, "-o", policy, "--resume", self.a)
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
