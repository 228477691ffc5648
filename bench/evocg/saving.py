#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the paper: policies for column blocks that learn from the reward `time`, what a solve behind the guard saves of FP64's time.

usage: bench/evocg/saving.py [--set cpu] [--only NAME,...] [--episodes 500] [--threads 1] ...
The network, and what training chose of it and of one level throughout (OUT/saving/NAME.safetensors), against FP64, FP32, 16 bits, the rule and the
error budget: the same storage (split), engine (fused), guard and system (b = A*1). Policies were judged on a random b.
"""
from common import *

SETTINGS["saving"] = dict(precond="none", engine="auto", options=["format=split"])
RIVALS = ["f32", "16", "budget", "rule"]


def trained(args, case):
    """What `halftone train` told, and the policy's two files: as it is, and with its network put to use whatever was kept."""
    folder = args.out / "saving"
    folder.mkdir(exist_ok=True)
    path, text, network = (folder / f"{case['name']}.{e}" for e in ("safetensors", "json", "network.safetensors"))
    if not text.exists() and not args.measured and not late(args):
        r = subprocess.run([args.halftone, "train", matrix(args, case), "-o", path, "--reward", "time", "--backend", "cpu", "--episodes", str(args.episodes), "--patience", "120", "--threads", str(args.threads), "--json"], capture_output=True, text=True)
        if r.returncode: print(f"{case['name']}: {r.stderr.strip()}", file=sys.stderr); return None, path, network
        text.write_text(r.stdout)
    if path.exists() and not network.exists(): change_policy(path, network, chosen="learned")
    return told(text) if text.exists() else None, path, network


def cell(f, r):
    if not r: return "-"
    if r["outcome"] != "converged": return r["outcome"]
    return f"{r['iterations']}, {r['residual_true']:.0e}, {times(1 / speed(r))}"


def main(argv=None):
    args = parse(parser(__doc__), argv)
    args.backend, lines, ratios, models, data = "cpu", [], {}, {}, {}
    for case in cases(args):
        t, path, network = trained(args, case)
        if not t: continue
        who = {"f64": "fixed:f64", "network": f"learned:{network}", "chosen": f"learned:{path}", "f32": "fixed:f32", "16": "fixed:bf16", "budget": "budget", "rule": "rule"}
        rows = measure_these(args, case, "saving", who)
        g = {r["contestant"]: r for r in rows}
        f = g.get("f64")
        if not f: continue
        model = {k: t[f"time_{k}"] for k in ("network", "f32", "16")}
        model["chosen"] = dict(model, **{"learned": model["network"], "fixed:f64": 1.0, "fixed:f32": model["f32"], "fixed:bf16": model["16"]})[t["chosen"]]
        for k, v in model.items(): models.setdefault(k, []).append(v)
        for k, r in g.items():
            if fair(f) and r["outcome"] == "converged" and speed(r) == speed(r): ratios.setdefault(k, []).append(1 / speed(r))
        mix = " / ".join(percent(t[k]) for k in ("share_f64", "share_f32", "share_16"))
        lines.append([case["name"], case["kind"], f["iterations"], f"{f['residual_true']:.0e}", mix, t["interval"], *(times(model[k]) for k in ("network", "f32", "16")), t["chosen"], *(cell(f, g.get(k)) for k in ("network", "chosen", *RIVALS))])
        data[case["name"]] = dict(t, model=model, rows=rows)
    text = beside([[f"{k}: time by FP64's, measured; by the model", "-", f"{times(geomean(known(ratios[k])))} ({len(ratios[k])} matrices); {times(geomean(known([v for v in models.get(k, []) if v])))}"] for k in ("chosen", "network", *RIVALS) if k in ratios])
    head = ["matrix", "kind", "FP64 it.", "true residual", "network reads FP64 / FP32 / 16 bits", "K*", "model: network", "FP32", "16 bits", "chosen", *(f"{k}: it., true residual, time" for k in ("network", "chosen", *RIVALS))]
    publish(args, "saving", "Policies that learn what a guarded solve saves (beyond the paper)", ["Times are by FP64's.\n", text, table(head, lines)], dict(matrices=data))


if __name__ == "__main__": main()
