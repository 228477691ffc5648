"""Traces of solves, and halftone report. SPDX-License-Identifier: BSD-3-Clause"""
import json
import subprocess
import unittest
import xml.etree.ElementTree

from cli import HALFTONE, run, Cli


class Trace(Cli):
    """--trace, and the page that is made of it."""

    def traced(self, name, *args, status=0):
        file = self.path(name)
        got, _, err = run("solve", *args, "--trace", "--report", file, "--quiet")
        self.assertEqual(got, status, err)
        return file, json.loads(file.read_text())

    def counts(self, trace):
        """Iteration, and blocks at 16, 32 and 64 bits, of each change of levels."""
        for entry in trace["levels"]:
            self.assertEqual(sum(g[0] for g in entry["groups"]), trace["groups"])
            counts = [sum(g[0] * g[1 + k] for g in entry["groups"]) for k in range(3)]
            self.assertEqual(sum(counts), trace["blocks"])
            yield entry["iteration"], counts

    def test_no_trace_unless_asked(self):
        self.assertNotIn("trace", self.solves(self.a))
        self.assertIn("trace", self.solves(self.a, "--trace"))

    def test_an_fp64_run_has_one_record_of_levels(self):
        _, report = self.traced("f.json", self.a, "--policy", "fixed:f64")
        trace, last = report["trace"], report["iterations"]
        self.assertEqual(list(self.counts(trace)), [(0, [0, 0, trace["blocks"]])])
        self.assertEqual([(r["iteration"], r["why"]) for r in trace["true_residuals"]], [(0, "start"), (last, "claim")])
        self.assertEqual(trace["true_residuals"][-1]["residual"], report["residual_true"])
        self.assertEqual([i for i, _ in trace["history"]], list(range(last + 1)))
        self.assertEqual((trace["times"][0][0], trace["times"][-1][0]), (0, last))
        seconds = [t for _, t in trace["times"]]
        self.assertEqual(seconds, sorted(seconds))
        self.assertLessEqual(seconds[-1], report["time_solve_s"])

    def test_levels_account_for_every_byte(self):
        """With one column block every product reads the whole matrix at that block's level."""
        a = self.path("one-block.mtx")
        self.assertEqual(run("gen", "stencil2d", "--size", "8", "--coefficients", "lognormal", "--seed", "1", "-o", a)[0], 0)
        common = ["--no-exactness-flags", "--precond", "none", "--stopping", "paper", "--rtol", "1e-9"]
        sweep = {}
        for name, key in (("f64", "bytes_f64"), ("f32", "bytes_f32"), ("bf16", "bytes_16")):
            report = self.solves(a, *common, "--policy", f"fixed:{name}", "--max-iterations", "8", status=1)
            self.assertEqual(report["iterations"], 8)
            sweep[key] = report[key] / 9 if key != "bytes_f64" else None  # the 9th product is made when the limit stops the loop
        _, report = self.traced("b.json", a, *common, "--policy", "budget", "--policy-interval", "1", "--max-iterations", "40", status=1)
        changes = list(self.counts(report["trace"]))
        self.assertEqual(report["trace"]["blocks"], 1)
        self.assertGreater(len(changes), 1)
        products, level = {"bytes_16": 0, "bytes_f32": 0}, None
        holds = dict(changes)
        for k in range(report["iterations"] + 1):
            level = holds.get(k, level)
            for key, index in (("bytes_16", 0), ("bytes_f32", 1)):
                products[key] += level[index]
        self.assertGreater(sum(products.values()), 0)
        for key, count in products.items():
            self.assertEqual(report[key], count * sweep[key], (key, changes))

    def test_a_run_that_is_guarded(self):
        _, report = self.traced("g.json", self.a, "--policy", "fixed:bf16", "--no-exactness-flags")
        whys = [r["why"] for r in report["trace"]["true_residuals"]]
        self.assertGreaterEqual(whys.count("replacement"), report["replacements"] - whys.count("claim"))
        self.assertGreater(report["replacements"], 0)

    def parse(self, page):
        """Well formed, nothing from outside, and every mark inside its picture. Returns the root."""
        text = page.read_text()
        root = xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))
        for word in ("http:", "https:", "src=", "@import", "url("):
            self.assertNotIn(word, text)
        for svg in root.iter("svg"):
            _, _, width, height = map(float, svg.get("viewBox").split())
            for mark in svg.iter():
                for key, most in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height), ("y2", height), ("cy", height)):
                    if mark.get(key):
                        self.assertTrue(0 <= float(mark.get(key)) <= most, xml.etree.ElementTree.tostring(mark))
                if mark.tag == "rect":
                    self.assertLessEqual(float(mark.get("x")) + float(mark.get("width")), width)
                if mark.tag == "path":
                    self.assertNotRegex(mark.get("d"), "nan|inf")
        return root

    def test_iterations_over_several_right_sides_say_so(self):
        b, report, page = self.made("two.mtx", self.GENERAL.replace("coordinate", "array") + "144 2\n" + "".join(f"{k % 7 + 1}\n" for k in range(288))), self.path("two.json"), self.path("two.html")
        self.assertEqual(run("solve", self.a, "-b", b, "--report", report, "--quiet")[0], 0)
        self.assertEqual(run("report", report, "-o", page)[0], 0)
        self.assertIn(f"<td>{json.loads(report.read_text())['iterations']} in 2 solves</td>", page.read_text())

    def test_a_page_of_several_runs(self):
        files = [self.traced(f"{k}.json", self.a, *options)[0]
                 for k, options in enumerate((["--policy", "budget", "--no-exactness-flags", "--policy-interval", "1"], ["--policy", "fixed:f64"],
                                              ["--policy", "fixed:f64", "--precond", "ic0"], ["--format", "csr"]))]
        files.append(self.traced("limit.json", self.a, "--max-iterations", "3", status=1)[0])
        neumann = self.made("n.mtx", self.HEAD + "3 3 5\n1 1 1\n2 2 2\n3 3 1\n2 1 -1\n3 2 -1\n")
        status, refused = run("solve", neumann, "-b", "ones", "--trace", "--json")[:2]
        self.assertEqual((status, json.loads(refused)["trace"]["history"]), (1, []))
        files.append(self.made("refused.json", refused))
        page = self.path("p.html")
        self.assertEqual(run("report", *files, "-o", page, "--quiet"), (0, "", ""))
        root = self.parse(page)
        text = "".join(root.itertext())
        for words in ("Residual against iterations", "Residual against time", "Precision mix", "Precision over the matrix", "Time by phase",
                      "Bytes by precision", "a, fixed:f64 (2)", "iteration_limit", "singular", "no levels"):
            self.assertIn(words, text)
        self.assertEqual(len(list(root.find(".//tbody"))), 6)

    def test_a_page_without_a_trace(self):
        file, page = self.path("plain.json"), self.path("plain.html")
        self.assertEqual(run("solve", self.a, "--report", file, "--quiet")[0], 0)
        self.assertEqual(run("report", file, "-o", page)[0], 0)
        self.assertIn("kept no trace", "".join(self.parse(page).itertext()))

    def test_names_cannot_become_markup(self):
        bad = self.dir / "<b onload='x'>&\"<script>.mtx"
        bad.write_text(self.a.read_text())
        file, _ = self.traced("bad.json", bad)
        page = self.path("bad.html")
        self.assertEqual(run("report", file, "-o", page, "--title", "</title><script>alert(1)</script>\x01", "--quiet")[0], 0)
        self.assertIsNone(self.parse(page).find(".//script"))
        odd = subprocess.run([HALFTONE, "report", file, "-o", page, "--title", b"\xff\xfe", "--quiet"], timeout=60)
        self.assertEqual(odd.returncode, 0)
        self.parse(page)

    def test_damaged_reports_leave_no_page(self):
        file, report = self.traced("good.json", self.a, "--policy", "budget")
        page, text = self.path("none.html"), file.read_text()
        def changed(**more):
            return json.dumps({**report, **more})
        def trace(**more):
            return changed(trace={**report["trace"], **more})
        texts = [("", "not JSON"), (text[:len(text) // 2], "not JSON"), ("[1, 2]", "not one JSON object"), ("{}", "outcome"),
                 (changed(outcome="fine"), "outcome"), (changed(n="many"), "'n'"), (changed(matrix=7), "matrix"), (trace(levels=7), "levels"),
                 (trace(groups=10**9), "blocks and groups"), (trace(groups=-1), "blocks and groups"), (trace(blocks="x"), "blocks"),
                 (trace(history=[[0, 1], [-1, 2]]), "ascend"), (trace(history=[0]), "pair"), (trace(times=None), "list"),
                 (trace(true_residuals=[{}]), "true residual"), (trace(levels=[{"iteration": 0, "groups": []}]), "add up"),
                 (trace(levels=[{"iteration": 0, "groups": [[10**12, 1, 0, 0]]}]), "add up"),
                 (trace(levels=[{"iteration": 0, "groups": [[report["trace"]["groups"], 0, 0, 0]]}]), "add up"),
                 (trace(levels=[{"iteration": 5, "groups": report["trace"]["levels"][0]["groups"]}, {"iteration": 4, "groups": []}]), "ascend"),
                 (changed(trace=3), "blocks"), ("{" * 100000, "not JSON")]
        for content, words in texts:
            self.fails(words, "report", self.made("damaged.json", content), "-o", page)
            self.assertFalse(page.exists())
        self.fails("cannot be opened", "report", self.path("missing.json"), "-o", page)
        self.fails("needs a report file", "report", "-o", page)
        self.fails("needs -o", "report", file)
        self.fails("cannot be written", "report", file, "-o", self.dir / "nowhere" / "p.html")
        self.fails("one word too many", "report", *[file] * 13, "-o", page)


if __name__ == "__main__":
    unittest.main()
