"""Policy files in solves: used, and refused. SPDX-License-Identifier: BSD-3-Clause"""
import json
import math
import struct
import unittest

from cli import run, Cli


def write_policy(path, metadata=None, tensors=None, weights=None):
    """A policy of the kind tiles with 2 hidden units that always says FP64; what differs from a good file is given."""
    shapes = {"backbone.0.weight": [2, 64], "backbone.0.bias": [2], "backbone.2.weight": [2, 2], "backbone.2.bias": [2], "policy.weight": [3, 2],
              "policy.bias": [3], "value.weight": [1, 2], "value.bias": [1], **(tensors or {})}
    header = {"__metadata__": {"format": "halftone-policy", "format_version": "1", "kind": "tiles", "state": "paper", "reward": "paper",
                               "actions": "f64,f32,16", "interval": "4", "hidden": "2", "trained_on": "nothing", "seed": "1", "episodes": "0",
                               "version": "0", **(metadata or {})}}
    at = 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack(f"<{at // 4}f", *(weights or [0.0] * (at // 4))))
    return f"learned:{path}"

class LearnedPolicies(Cli):
    def test_solves_and_says_who_decided(self):
        policy = write_policy(self.path("mine.safetensors"))
        report = self.solves(self.a, "--policy", policy)
        self.assertEqual(report["policy"], "learned:mine")
        self.assertIn("every 4 iterations, learned in 0 episodes on nothing", report["policy_chosen"])
        self.assertEqual(report["options"]["policy"], policy)
        self.assertEqual(report["iterations"], self.solves(self.a, "--policy", "fixed:f64")["iterations"])
        name = "a-policy-with-a-rather-long-name-of-which-nothing-is-to-be-left-out"
        self.assertEqual(self.solves(self.a, "--policy", write_policy(self.path(f"{name}.safetensors")))["policy"], f"learned:{name}")
        status, out, err = run("bench", self.a, "--repeat", "1", "--policy", f"fixed:f64,{policy}")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("learned:mine", out)

    def test_refused_files(self):
        name, nan = self.path("p.safetensors"), float("nan")
        weights = [0.0] * 148
        cases = [({"format": "other"}, None, None, "something else"), ({"format_version": "9"}, None, None, "format_version"),
                 ({"kind": "columns"}, None, None, "'columns'"), ({"state": "features"}, None, None, "'state'"),
                 ({"actions": "f64,f8,16"}, None, None, "f64,f8,16"), ({"interval": "often"}, None, None, "'often'"),
                 ({"hidden": "3"}, None, None, "[3, 64]"), ({"hidden": "1e9"}, None, None, "'1e9'"),
                 (None, {"policy.weight": [2, 3]}, None, "[3, 2]"), (None, {"more": [1]}, None, "9"),
                 (None, {"policy.weight": [3, 2] + [1] * 60}, None, "found [3,2,1,"),
                 (None, None, [nan] + weights[1:], "nan")]
        for metadata, tensors, numbers, words in cases:
            self.fails([str(name), "expected", "found", "train", words], "solve", self.a, "--policy", write_policy(name, metadata, tensors, numbers))
        whole = name.read_bytes()
        for length, found in ((0, "0 bytes"), (1, "1 byte;"), (9, "1 byte in all"), (100, "92 bytes in all"), (len(whole) - 300, "found 292;"), (len(whole) - 1, "found 591;")):
            name.write_bytes(whole[:length])
            self.fails([str(name), "expected", found, "cut short"], "solve", self.a, "--policy", f"learned:{name}")
        self.fails([str(self.a), "another kind of file"], "solve", self.a, "--policy", f"learned:{self.a}")
        self.fails(["nowhere", "cannot be opened"], "solve", self.a, "--policy", "learned:nowhere")
        self.fails("did you mean 'learned:FILE'", "solve", self.a, "--policy", "learned:")
        self.fails("did you mean 'budget'", "solve", self.a, "--policy", "bugdet")


if __name__ == "__main__":
    unittest.main()
