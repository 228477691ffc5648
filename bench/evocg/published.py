#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Secs. 3.2, 4.3 and 4.4: training as the authors' public code does it (agents.py), and what true residual its solves have.

usage: bench/evocg/published.py [--only NAME,...] [--matrices FOLDER] [--seconds 1500] [--agents 64] [--ways NUMBER,...] ...
Everything is emulated in NumPy on one core. An update of the public code makes 80 steps for each column block; --agents says how many blocks, drawn anew,
learn in an update where there are more, and --seconds when a training is cut off: the table tells what was done. Networks are judged without a guard as the
paper stops (recursive residual): as evaluation draws there, and with the likeliest levels.
"""
import numpy as np
from common import *
import agents

MATRICES = "mesh2e1,Dubcova1,jnlbrng1,wathen100"
PREFERRED, EVEN = (10, 1, 1), (0, 0, 0)
DICE, THROUGH = "a third each, by the dice", "fp64, matrix through fp32"
WAYS = {"as the code": dict(), "p not rounded": dict(round_p=False), "no first preference": dict(first=EVEN), "limit five times FP64's iterations": dict(limit=5.0), "one agent for all blocks": dict(one=True)}


def judge(solve, net, choose, rng, f64):
    """A solve with its decisions: what it took, what is left, and whether decisions follow the state."""
    state, over, taken, chances = solve.begin(), False, [], []
    while not over:
        chances.append(np.exp(net.forward(state)[0]))
        taken.append(choose(net, state, rng))
        over, state = solve.step(taken[-1])[1], solve.state()
    taken, chances, quarter = np.array(taken), np.array(chances), np.array_split(np.array(taken), 4)
    mean, tile = chances.mean(axis=(0, 1)), chances.mean(axis=0)
    return dict(iterations=solve.k, converged=bool(solve.converged), recursive=solve.residual / f64["residual"], true=solve.true_residual() / f64["true"], mix=[float((taken == l).mean()) for l in range(3)],
                quarters=[[float((q == l).mean()) for l in range(3)] for q in quarter], over_time=float(0.5 * np.abs(chances - tile).sum(axis=2).mean()), between_blocks=float(0.5 * np.abs(tile - mean).sum(axis=1).mean()),
                changed=float((taken[1:] != taken[:-1]).mean()), chances=mean.tolist())


class Blind:
    """The same levels as often, whatever the state."""
    def __init__(self, chances): self.log = np.log(np.maximum(chances, 1e-30))[None]
    def forward(self, state): return np.repeat(self.log, len(state), axis=0), None


def one_level(solve, choose):
    """A solve with the same choice in every iteration."""
    solve.begin()
    while not solve.step(choose())[1]: pass
    return dict(iterations=solve.k, converged=bool(solve.converged), residual=solve.residual, true=solve.true_residual())


def levels(a):
    """Each level throughout, with p rounded and not; levels by the dice; and FP64 on a matrix that went through FP32, as the public code's first storage has it."""
    out, tiles, rng = {}, -(-a.shape[0] // agents.BLOCK), np.random.default_rng(1)
    for round_p in (True, False):
        solve = agents.Solve(agents.Stores(a, round_p), MOST_ITERATIONS)
        for l, name in enumerate(agents.NAMES):
            if l or round_p: out[name if round_p else f"{name}, p not rounded"] = one_level(solve, lambda: np.full(tiles, l))
        if round_p: out[DICE] = one_level(solve, lambda: rng.integers(0, 3, tiles))
    single = a.copy()
    single.data = a.data.astype(np.float32).astype(np.float64)
    solve = agents.Solve(agents.Stores(single), MOST_ITERATIONS)
    solve.b, solve.norm_b = a @ np.ones(a.shape[0]), np.linalg.norm(a @ np.ones(a.shape[0]))
    out[THROUGH] = one_level(solve, lambda: np.zeros(tiles, int))
    out[THROUGH]["true"] = float(np.linalg.norm(solve.b - a @ solve.x) / solve.norm_b)
    return out


def study(args, a, f64, way, seed=1):
    """Training, and the networks at its end and where evaluation liked it best, with drawn and with likeliest levels."""
    rng, limit = np.random.default_rng(seed), int(WAYS[way].get("limit", 1.5) * f64["iterations"])
    solve = agents.Solve(agents.Stores(a, WAYS[way].get("round_p", True)), limit)
    net, last, best, told = agents.train(solve, WAYS[way].get("first", PREFERRED), args.episodes, args.agents, rng, min(args.seconds, args.budget - (time.monotonic() - args.began)), args.evaluations, WAYS[way].get("one", False))
    solve.limit, out = MOST_ITERATIONS, dict(told, blocks=solve.stores.tiles, agents=min(args.agents or solve.stores.tiles, solve.stores.tiles))
    for name, flat in (("last", last), ("best", best)):
        net.flat[:] = flat
        out[name] = judge(solve, net, agents.draw, rng, f64)
        out[f"{name}, likeliest"] = judge(solve, net, agents.likeliest, rng, f64)
    out["blind"] = judge(solve, Blind(out["best"]["chances"]), agents.draw, rng, f64)
    out["record"] = out["record"][::max(len(out["record"]) // 12, 1)] + out["record"][-1:]
    return out


def worth(iterations, residual, mix):
    """The return of a solve that reached the tolerance, by equation 11 without discount; residual: the recursion's at the stop, by b's norm."""
    return -agents.WEIGHTS[0] * math.log(residual) + agents.WEIGHTS[2] - agents.WEIGHTS[1] * iterations * float(np.dot(agents.COSTS, mix))


def shares(v): return "/".join(f"{100 * x:.0f}" for x in v)


def fixed_rows(name, kind, got):
    f, out = got["fp64"], []
    for which, g in got.items():
        mix = [1 / 3] * 3 if which == DICE else [float(which.startswith(n)) for n in agents.NAMES]
        out.append([name, kind, which, g["iterations"] if g["converged"] else f"{g['iterations']}, not there", f"{g['true']:.1e}", times(g["residual"] / f["residual"]), short(g["true"] / f["true"]), f"{worth(g['iterations'], g['residual'], mix):.1f}" if g["converged"] else "-"])
    return out


def rows_of(name, kind, way, f64, s):
    out = []
    for label, title in (("best", "best, drawn"), ("best, likeliest", "best, likeliest"), ("blind", "best's shares, blind"), ("last", "last, drawn"), ("last, likeliest", "last, likeliest")):
        j = s[label]
        out.append([name, way, title, f"{j['iterations']} / {f64['iterations']}" + ("" if j["converged"] else ", not there"), shares(j["mix"]), *(shares(q) for q in j["quarters"]), times(j["recursive"]), short(j["true"]),
                    f"{j['over_time']:.2f}, {j['between_blocks']:.2f}", percent(j["changed"]), f"{worth(j['iterations'], j['recursive'] * f64['residual'], j['mix']):.1f}" if j["converged"] else "-"])
    return out


def main(argv=None):
    p = parser(__doc__)
    p.add_argument("--agents", type=int, default=64, help="column blocks that learn in an update; 0: all (64)")
    p.add_argument("--seconds", type=float, default=1500, help="of a training, at most (1500)")
    p.add_argument("--evaluations", type=int, default=5, help="episodes of an evaluation (5)")
    p.add_argument("--ways", default="0,1,2", help=f"numbers of {', '.join(f'{i}: {w}' for i, w in enumerate(WAYS))} (0,1,2)")
    args = parse(p, argv)
    args.backend, wanted = "cpu", args.only
    path = args.out / "published-runs.json"
    runs = json.loads(path.read_text()) if path.exists() else {}
    trained = cases(argparse.Namespace(**dict(vars(args), only=wanted or MATRICES)))
    rows = trained + ([] if wanted else [c for c in cases(args) if c["name"] not in MATRICES.split(",")])
    for case in [] if args.measured else rows:
        if late(args): break
        a = load(matrix(args, case))
        if case["name"] not in runs: runs[case["name"]] = dict(kind=case["kind"], levels=levels(a), ways={})
        got = runs[case["name"]]
        for way in (list(WAYS)[int(i)] for i in args.ways.split(",") if i) if case in trained else ():
            if way in got["ways"] or late(args): continue
            print(f"{case['name']}, {way} ...", flush=True)
            got["ways"][way] = study(args, a, got["levels"]["fp64"], way)
            path.write_text(json.dumps(runs))
        path.write_text(json.dumps(runs))
    tell(args, {n: g for n, g in runs.items() if not wanted or n in wanted.split(",")})


def residuals(runs):
    """Geometric means of a solve's residuals by FP64's: of the recursion at the stop, and true; by the level throughout, and of what was learned."""
    out, fair_ones = [], {n: g["levels"] for n, g in runs.items() if LEAST_ITERATIONS <= g["levels"]["fp64"]["iterations"] < MOST_ITERATIONS}
    for which in list(next(iter(runs.values()))["levels"])[1:]:
        mine = [(g[which], g["fp64"]) for g in fair_ones.values() if g[which]["converged"]]
        out.append([which, len(mine), *(short(geomean([a[k] / f[k] for a, f in mine])) for k in ("residual", "true")), signed(mean([a["iterations"] / f["iterations"] - 1 for a, f in mine]))])
    for way in WAYS:
        mine = [(g["ways"][way]["best"], g["levels"]["fp64"]) for g in runs.values() if way in g["ways"]]
        if mine: out.append([f"learned, {way}", len(mine), *(short(geomean([a[k] for a, _ in mine])) for k in ("recursive", "true")), signed(mean([a["iterations"] / f["iterations"] - 1 for a, f in mine]))])
    return out


def tell(args, runs):
    fixed, learned, training = [], [], []
    for name, got in runs.items():
        fixed += fixed_rows(name, got["kind"], got["levels"])
        for way, s in got["ways"].items():
            learned += rows_of(name, got["kind"], way, got["levels"]["fp64"], s)
            r = s["record"]
            training.append([name, way, f"{s['agents']} of {s['blocks']}", s["updates"], percent(s["share"]), f"{s['seconds']:.0f}", f"{r[0]['entropy']:.3f}", f"{r[len(r) // 2]['entropy']:.2f}", f"{r[-1]['entropy']:.2f}", shares(r[-1]["mix"]), f"{s['best_return']:.1f}"])
    publish(args, "published", "Training as the authors' public code does it (Secs. 3.2, 4.3, 4.4)", [
        "Residuals by FP64's, geometric means. The paper: 1.0108, called true, at 11.4 % more iterations.\n", table(["", "matrices", "at the stop, by the recursion", "true", "iterations"], residuals(runs)),
        "Trainings. Mixes are FP64/FP32/16 bits in per cent.\n",
        table(["matrix", "training", "blocks that learn in an update", "updates", "done of it", "s", "entropy after the first update", "half-way", "at the end", "drawn at the end", "best evaluation's return"], training),
        "Solves. `blind` draws as often, whatever the state. Dependence: half the sum of differences between a state's chances and their mean, over a block's iterations, and between blocks' means (0: none, 1: all).\n",
        table(["matrix", "training", "network", "it. / FP64", "mix", "first quarter", "second", "third", "last", "recursive residual", "true residual", "dependence over time, between blocks", "decisions changed an iteration", "return"], learned),
        "One level throughout. Where p is not rounded products are made in FP64. Returns are by equation 11, without discount.\n", table(["matrix", "kind", "level", "it.", "true residual", "recursive by FP64's", "true by FP64's", "return"], fixed)], dict(matrices=runs))


if __name__ == "__main__": main()
