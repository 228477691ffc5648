"""What the experiments share: matrices, policies, measurements, tables. See docs/evocg.md.

The measurements are kept in OUT/measured-BACKEND.json, so that experiments share them, and so that those of a card can be tabulated on
another machine. SPDX-License-Identifier: BSD-3-Clause
"""
import argparse, csv, datetime, json, math, os, pathlib, shlex, statistics, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from means import geomean
import made

LEAST_ITERATIONS, MOST_ITERATIONS = 50, 10000  # of FP64: below and above a run is listed, not averaged
WORTH_RESIDUAL, WORTH_ITERATIONS = 0.1, 0.5  # by ||b||, by FP64's: an uncertified run beyond either is listed, not averaged
PAPER_TRAINING = "--reward paper"  # equation 11 with the paper's hyperparameters; training.py has other readings
SETTINGS = {  # what is compared under which rules
    "cg": dict(precond="none", engine="paper", options=["guard=off", "stopping=paper", "column-sums=off", "format=tilecsc", "ordering=natural"]),
    "guarded": dict(precond="none", engine="paper", options=["format=tilecsc", "ordering=natural"]),
    "jacobi": dict(precond="jacobi", engine="paper", options=["guard=off", "stopping=paper", "column-sums=off", "format=tilecsc", "ordering=natural"]),
    "product": dict(precond="none", engine="auto", options=[]),
    "jacobi-guarded": dict(precond="jacobi", engine="paper", options=["format=tilecsc", "ordering=natural"]),
    "jacobi-product": dict(precond="jacobi", engine="auto", options=[]),
    "peers": dict(precond="none", engine="paper", options=["guard=off", "stopping=paper", "column-sums=off", "format=tilecsc", "ordering=natural"]),
    "peers-product": dict(precond="none", engine="auto", options=[]),
}
PROGRAMS = ("petsc", "ginkgo")  # libraries that gpu_batch.sh runs beside ours under the last two


# ---- the command line ----

def parser(doc, **defaults):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--halftone", default=os.environ.get("HALFTONE", str(ROOT / "build/halftone")), help="the command (build/halftone)")
    p.add_argument("--bench-gpu", default=os.environ.get("BENCH_GPU_CG", str(ROOT / "build/bench_gpu_cg")), help="the program bench_gpu_cg, for --backend cuda")
    p.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--table", default=str(HERE / "matrices.tsv"))
    p.add_argument("--set", dest="sets", default="cpu", help="rows of the table: cpu, gpu or both with a comma (cpu)")
    p.add_argument("--only", default="", help="names, with commas between them, whatever the set")
    p.add_argument("--matrices", default=os.environ.get("HALFTONE_MATRICES", ""), help="folder searched for NAME.mtx, .mtx.gz or .npz, which then take the place of stand-ins")
    p.add_argument("--out", default="evocg-out", help="folder of matrices, policies, measurements and tables")
    p.add_argument("--policies", default="", help="folder of trained policies NAME.safetensors (OUT/policies); missing ones are trained")
    p.add_argument("--no-train", action="store_true", help="leave out what has no policy")
    p.add_argument("--episodes", type=int, default=1000)
    p.add_argument("--train", default=PAPER_TRAINING, help="options of `halftone train` (%(default)s)")
    p.add_argument("--transfer", default="mesh2e1", help="the matrix whose policy is carried to the others")
    p.add_argument("--pairs", type=int, default=defaults.get("pairs", 5), help="rounds; 1: no times, iterations and accuracy alone")
    p.add_argument("--threads", type=int, default=0, help="of the CPU; 0: all that this process may use")
    p.add_argument("--budget", type=float, default=1e9, help="seconds after which no new matrix is begun")
    p.add_argument("--measured", action="store_true", help="tabulate what OUT holds, measure nothing")
    return p


def parse(p, argv=None):
    args = p.parse_args(argv)
    if args.matrices and not os.path.isdir(args.matrices): p.error(f"--matrices: there is no folder {args.matrices}")
    args.out = pathlib.Path(args.out)
    args.policies = pathlib.Path(args.policies) if args.policies else args.out / "policies"
    for folder in (args.out, args.policies, args.out / "matrices"): folder.mkdir(parents=True, exist_ok=True)
    args.began = time.monotonic()
    return args


def late(args): return time.monotonic() - args.began > args.budget


# ---- matrices ----

def find_real(folder, name):
    if not folder or not name: return None
    for ending in (".mtx", ".mtx.gz", ".npz"):
        for path in sorted(pathlib.Path(folder).rglob(name + ending)): return path
    return None


def listed(table): return list(csv.DictReader([l for l in pathlib.Path(table).read_text().splitlines() if not l.startswith("#")], delimiter="\t"))


def cases(args):
    """The rows asked for. kind: real (a file was found), formula (the generator gives the collection's matrix) or stand-in."""
    rows = listed(args.table)
    names, sets = args.only.split(","), set(args.sets.split(","))
    rows = [r for r in rows if (r["name"] in names or r["for"] in names if args.only else sets & set(r["sets"].split(",")))]
    if not rows: sys.exit(f"no row of {args.table} is of " + (f"--only {args.only}" if args.only else f"--set {args.sets}"))
    for r in rows: r["file"] = find_real(args.matrices, r["for"])
    for r in rows: r.update(kind="real" if r["file"] else r["kind"], policy=r.get("policy") or "-")
    return [r for r in rows if r["file"] or r["recipe"] != "-"]


def matrix(args, case):
    """The matrix as a file."""
    if case["file"]: return case["file"]
    path = args.out / "matrices" / f"{case['name']}.npz"
    if not path.exists():
        if made.here(case["recipe"]): made.write(args.halftone, case["recipe"], path)
        else: subprocess.run([args.halftone, "gen", *shlex.split(case["recipe"]), "-o", path, "--quiet"], check=True)
    return path


def load(path):
    """As SciPy's CSR, both triangles."""
    import numpy as np, scipy.sparse as sp, scipy.io
    a = sp.load_npz(path) if str(path).endswith(".npz") else scipy.io.mmread(path)
    return sp.csr_matrix(a).astype(np.float64)


# ---- policies ----

def policy(args, name, case=None):
    """The policy file trained on this matrix, or None. What is not there is trained, unless that is not wanted."""
    path = args.policies / f"{name}.safetensors"
    if path.exists() or args.no_train or args.measured or late(args): return path if path.exists() else None
    if case is None: case = dict(next(r for r in cases(argparse.Namespace(**dict(vars(args), only=name)))))
    print(f"training on {name} ...", flush=True)
    r = subprocess.run([args.halftone, "train", matrix(args, case), "-o", path, "--episodes", str(args.episodes), "--threads", str(args.threads), *shlex.split(args.train), "--json"], capture_output=True, text=True)
    if r.returncode: print(f"{name}: {r.stderr.strip()}", file=sys.stderr); return None
    (args.policies / f"{name}.json").write_text(r.stdout)
    return path


def training(args, name):
    path = args.policies / f"{name}.json"
    try: return json.loads(path.read_text())
    except (OSError, ValueError): return None  # not trained, or not to the end


def read_policy(path):
    """Tensors and metadata of a safetensors file."""
    import numpy as np
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + size])
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    tensors = {}
    for name, t in head.items():
        if name == "__metadata__": continue
        first, end = t["data_offsets"]
        tensors[name] = np.frombuffer(raw[8 + size + first:8 + size + end], kinds[t["dtype"]]).reshape(t["shape"])
    return tensors, head["__metadata__"], raw, size


def change_policy(path, out, action=None, **metadata):
    """The same policy with other metadata and no checksum, and with one action's bias (0: FP64, 1: FP32, 2: 16 bits) raised beyond the others, unless None."""
    import numpy as np
    _, _, raw, size = read_policy(path)
    head, data = json.loads(raw[8:8 + size]), bytearray(raw[8 + size:])
    if action is not None: np.frombuffer(data, "<f4", 3, head["policy.bias"]["data_offsets"][0])[action] = 30000  # within FP16, in which weights are deployed
    head["__metadata__"] = dict(contest="none") | head["__metadata__"] | {k: str(v) for k, v in metadata.items()}
    head["__metadata__"].pop("crc32", None)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(out).write_bytes(len(text).to_bytes(8, "little") + text + bytes(data))


# ---- measurements ----

def store(args): return args.out / f"measured-{args.backend}.json"


def measured(args): return json.loads(store(args).read_text()) if store(args).exists() else {"rows": []}


def key(row): return (row["matrix"], row["setting"], row["contestant"])


def about(args):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE).stdout.strip()
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    return dict(commit=commit, date=str(datetime.date.today()), cpu=cpu, cores=os.cpu_count(), backend=args.backend)


def contestants(args, case, wanted):
    """Label to policy; those that have no file are left out."""
    out = {}
    for label in wanted:
        if label in ("learned", "transfer", "transfer64", "constant", "constant64", "constant8", "constant4096"):
            whose = args.transfer if label.startswith("transfer") else case["name"] if case["policy"] == "-" else case["policy"]
            own = policy(args, whose, case if whose == case["name"] else None)
            if own is None: continue
            if label.startswith("constant"):  # what inference costs when it changes nothing
                path = args.policies / f"{case['name']}.{label}.safetensors"
                if not path.exists(): change_policy(own, path, 0, chosen="learned", **(dict(interval=int(label[8:])) if label[8:] else {}))
                own = path
            if label == "transfer64":
                path = args.policies / f"{args.transfer}-64.safetensors"
                if not path.exists(): change_policy(own, path, interval=64)
                own = path
            out[label] = f"learned:{own}"
        elif label in ("settled", "time"):  # brought along, not made here: gpu_batch.sh, saving.py
            path = args.out / label / f"{case['name']}.safetensors"
            if path.exists(): out[label] = f"learned:{path}"
        else: out[label] = {"f64": "fixed:f64", "f32": "fixed:f32", "16": "fixed:bf16"}.get(label, label)
    return out


def measure(args, setting, wanted, rows):
    """Rows for these contestants under a setting, from the store where they are there; the first contestant is the reference."""
    got = measured(args)
    have = {key(r) for r in got["rows"]}
    for case in rows:
        if args.measured: break
        missing = [w for w in wanted if (case["name"], setting, w) not in have]
        if not missing: continue
        if late(args): print("the time is over", flush=True); break
        who = contestants(args, case, wanted)
        if not any(w in who for w in missing): continue
        got = keep(args, (measure_cpu if args.backend == "cpu" else measure_cuda)(args, case, setting, who))
    names = {c["name"] for c in rows}
    return [r for r in got["rows"] if r["setting"] == setting and r["contestant"] in wanted and r["matrix"] in names]


def keep(args, new):
    """Into the store, which is returned."""
    got = measured(args)
    got["rows"] = [r for r in got["rows"] if key(r) not in {key(n) for n in new}] + new
    got.update(about(args))
    store(args).write_text(json.dumps(got, indent=1))
    for r in new: print(f"{r['matrix']:22} {r['setting']:8} {r['contestant']:10} {r['outcome']:18} {r['iterations']:6} it {1e3 * r['loop_s']:9.2f} ms  x{r['speedup']:.2f}", flush=True)
    return got


def measure_these(args, case, setting, who):
    """Of one matrix, by label and policy."""
    of = lambda got: [r for r in got["rows"] if r["matrix"] == case["name"] and r["setting"] == setting and r["contestant"] in who]
    rows = of(measured(args))
    return rows if args.measured or late(args) or len(rows) == len(who) else of(keep(args, measure_cpu(args, case, setting, who)))


def option_list(setting, backend):
    s = SETTINGS[setting]
    given = [o.split("=") for o in s["options"]]
    engine = s["engine"] if backend == "cuda" or s["engine"] != "paper" else "textbook"  # the paper's engine is a GPU's
    return [f"--no-{n}" if v == "off" else f"--{n}={v}" for n, v in given] + ["--precond", s["precond"], "--engine", engine]


def bench_cpu(args, case, setting, who, rounds):
    r = subprocess.run([args.halftone, "bench", matrix(args, case), "--json", "--policy", ",".join(who.values()), "--repeat", str(rounds), "--rtol", "1e-10", "--max-iterations", str(MOST_ITERATIONS),
                        "--backend", "cpu", "--threads", str(args.threads), *option_list(setting, "cpu")], capture_output=True, text=True)
    if r.returncode > 1: print(f"{case['name']}: {r.stderr.strip()}", file=sys.stderr); return {}
    return dict(zip(who, json.loads(r.stdout)["policies"]))


def measure_cpu(args, case, setting, who):
    """All contestants take turns in one process (`halftone bench`), after a round that is not kept and shows who is worth timing."""
    got = bench_cpu(args, case, setting, who, 1)
    able = {k: v for k, v in who.items() if k in got and (k == "f64" or got[k]["outcome"] in ("converged", "recursive_only"))}
    if args.pairs > 1: got.update(bench_cpu(args, case, setting, able, args.pairs))
    out = []
    for label, p in got.items():
        row = {k: p.get(k) for k in ("outcome", "n", "nnz", "iterations", "products", "replacements", "restores", "residual_true", "residual_recursive", "error_known", "policy_chosen", "engine", "format", "bytes_matrix", "bytes_f64", "bytes_f32", "bytes_16", "bytes_vectors")}
        row["loop_s"] = p["solve_s"]["median"] - (p["time_certificate_s"] or 0)
        row.update(least_s=p["solve_s"]["least"], most_s=p["solve_s"]["most"], speedup=p["speedup_solve"]["median"], speedup_least=p["speedup_solve"]["least"], speedup_most=p["speedup_solve"]["most"], pairs=args.pairs)
        out.append(finish(case, setting, label, row))
    return out


def measure_cuda(args, case, setting, who):
    """bench_gpu_cg: the same with cuSPARSE in both forms, in one process on the device."""
    s, out = SETTINGS[setting], args.out / f"gpu-{case['name']}-{setting}.json"
    name = f"{case['name']}={matrix(args, case) if case['file'] or made.here(case['recipe']) else case['recipe']}"
    command = [args.bench_gpu, name, "--policies", ",".join(who.values()), "--precond", s["precond"], "--engine", s["engine"], "--pairs", str(args.pairs), "--max-iterations", str(MOST_ITERATIONS), "--out", out]
    for o in s["options"]: command += ["--option", o]
    r = subprocess.run(command, capture_output=True, text=True)
    if r.stderr: print(r.stderr.strip(), file=sys.stderr)
    return read_gpu(out, setting, {v: k for k, v in who.items()}, case) if out.exists() else []


def read_gpu(path, setting, label_of, case=None):
    """Rows of bench_gpu_cg as ours. label_of: policy, as asked, to contestant."""
    rows = json.loads(pathlib.Path(path).read_text())["rows"]
    base, out = {}, []
    for r in rows:
        label = label_of.get(r["policy"])
        if label is None: continue
        if r.get("error"): print(f"{r['matrix']}, {label}: {r['error']}", file=sys.stderr); continue
        row = {k: r.get(k) for k in ("outcome", "n", "nnz", "iterations", "products", "replacements", "residual_true", "error_known", "policy_chosen", "engine", "format", "bytes_matrix", "bytes_f64", "bytes_f32", "bytes_16", "bytes_vectors", "us_per_iteration_cusparse", "us_per_iteration_graph", "us_product_cusparse", "time_cusparse_s", "time_graph_s", "iterations_cusparse", "pairs")}
        certificate = r["time_certificate_s"] or 0
        row["loop_s"] = (r["us_per_iteration"] or 0) * 1e-6 * r["iterations"] # none: it broke down at once
        row.update(least_s=r["time_min_s"], most_s=r["time_max_s"])
        base.setdefault(r["matrix"], row["loop_s"])
        row.update(reference_s=base[r["matrix"]], speedup=base[r["matrix"]] / row["loop_s"] if row["loop_s"] else None, speedup_least=r["speedup_f64_min"], speedup_most=r["speedup_f64_max"])
        out.append(finish(case or dict(name=r["matrix"], kind=""), setting, label, row))
    return out


def finish(case, setting, label, row):
    row.update(matrix=case["name"], kind=case["kind"], setting=setting, contestant=label)
    row["bytes_csr"] = 12 * row["nnz"] + 4 * (row["n"] + 1)
    row.update(zip(("share_64", "share_32", "share_16"), mix(row)))
    return row


def mix(row):
    """Shares of the products' entries read at 8, 4 and 2 bytes, from the bytes that the report counts at each level. An entry of Tile-CSC costs
    its value, 2 bytes of row index and its part of the tiles' descriptions, 16 bytes an entry with all three values being what is stored."""
    certificates = (row["products"] - row["iterations"]) * (12 * row["nnz"] + 8 * row["n"])
    over = max(row["bytes_matrix"] / row["nnz"] - (14 if row["format"] == "tilecsc" else 8), 2) if row["bytes_matrix"] else 2
    parts = [max((row["bytes_f64"] or 0) - certificates, 0) / (8 + over), (row["bytes_f32"] or 0) / (4 + over), (row["bytes_16"] or 0) / (2 + over)]
    total = sum(parts)
    return [p / total for p in parts] if total else [1.0, 0.0, 0.0]


def speed(row): return row["speedup"] if row.get("pairs") != 1 else float("nan")  # one round is no measurement of time


def over(row, reference):
    """What more it takes than the reference, that of its own run where a card's batch had several."""
    return row["loop_s"] / (row.get("reference_s") or reference["loop_s"]) - 1


def fair(row): return reached(row) and LEAST_ITERATIONS <= row["iterations"] <= MOST_ITERATIONS


def reached(row):
    """As the paper counts: the recursive residual met the tolerance."""
    return row["outcome"] in ("converged", "recursive_only")


def worth(f, r):
    """Whether a run that met its test counts in a mean of speeds or iterations: its true residual is certified, or it is a solve of this matrix at
    all. No low precision makes one iteration of CG do what two of FP64 do, so that half as many are a matrix's that rounding made another."""
    return reached(r) and (r["outcome"] == "converged" or (r["residual_true"] < WORTH_RESIDUAL and r["iterations"] >= WORTH_ITERATIONS * f["iterations"]))


def left_out(pairs):
    """Names of those that do not count, with their iterations and true residual."""
    return [f"{r['matrix']} ({r['iterations']} of {f['iterations']}, {r['residual_true']:.2g})" for f, r in pairs if not worth(f, r)]


def error_ratio(f, r):
    """Of the errors against the known solution; NaN where one is not known or 0."""
    return r["error_known"] / f["error_known"] if r.get("error_known") and f.get("error_known") else float("nan")


def by_matrix(rows):
    out = {}
    for r in rows: out.setdefault(r["matrix"], {})[r["contestant"]] = r
    return out


def known(v): return [x for x in v if x == x]


def best_third(v): return sorted(v)[-max(len(v) // 3, 1):] if v else []


def mean(v): return sum(v) / len(v) if v else float("nan")


def median(v): return statistics.median(v) if v else float("nan")


# ---- tables ----

def percent(x, digits=0): return "-" if x is None or x != x else f"{100 * x:.{digits}f} %"


def signed(x): return "-" if x is None or x != x else f"{100 * x:+.1f} %"


def times(x): return "-" if x is None or x != x else f"{x:.2f}"


def short(x): return "-" if x != x else f"{x:.3g}"


def paper_of(name):
    """What the paper says of a matrix; numbers with the name's stand-in are beside ours all the same, and marked."""
    return PAPER.get(name, {})


PAPER = {  # iterations, milliseconds on an A100, and precision mix FP64/FP32/BF16, as far as the paper tells them by name
    "finan512": dict(learned=58, rule=57, f64=57, ms=(2.68, 4.06, 7.39)), "bcsstm39": dict(learned=499, rule=415, f64=415, ms=(12.76, 18.37, 46.71)),
    "cvxbqp1": dict(learned=5095, rule=5083, f64=5081, ms=(161.05, 281.30, 583.76)), "jnlbrng1": dict(learned=156, rule=154, f64=154, ms=(4.35, 5.65, 19.00)),
    "bundle1": dict(learned=264, rule=216, f64=215, ms=(11.50, 15.98, 27.11)), "ted_B": dict(learned=682, rule=821, f64=493, ms=(13.48, 15.52, 51.10)),
    "ted_B_unscaled": dict(learned=45, rule=41, f64=41, ms=(1.13, 1.28, 5.05)), "cbuckle": dict(learned=4849, rule=4845, f64=4842, ms=(240.54, 261.22, 524.91)),
    "Dubcova2": dict(learned=193, rule=10000, f64=193, ms=(11.88, 1571.47, 25.51)), "Pres_Poisson": dict(learned=3428, rule=10000, f64=2435, ms=(131.05, 560.07, 266.85)),
    "wathen100": dict(learned=345, f64=314), "bodyy4": dict(learned=268, f64=227), "minsurfo": dict(learned=103, transfer=97), "qa8fm": dict(learned=75, transfer=75),
    "wathen120": dict(learned=354, transfer=360), "Dubcova1": dict(learned=116, transfer=176),
}


def table(head, rows):
    """Markdown."""
    line = lambda cells: "| " + " | ".join(str(c) for c in cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)]) + "\n"


def beside(rows):
    """The summary: what, the paper's, ours."""
    return table(["what", "paper (A100)", "ours"], rows)


def told(path):
    """What `halftone train` told, with the files' names alone."""
    t = json.loads(pathlib.Path(path).read_text())
    return dict(t, trained_on=[pathlib.Path(p).name for p in t["trained_on"]])


def known_numbers(data):
    """NaN is not JSON."""
    if isinstance(data, dict): return {k: known_numbers(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)): return [known_numbers(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def publish(args, name, title, parts, data):
    """OUT/NAME.md and OUT/NAME.json. parts: paragraphs and tables."""
    known = about(args)
    where = measured(args)
    text = f"# {title}\n\n{known['backend']}, {where.get('cpu', known['cpu'])}, {where.get('cores', known['cores'])} cores, {where.get('date', known['date'])}, {where.get('commit', known['commit'])}. Averaged are matrices that FP64 solves in {LEAST_ITERATIONS} to {MOST_ITERATIONS:,} iterations, and of uncertified runs those that leave a true residual below {WORTH_RESIDUAL:g} ||b|| after at least {WORTH_ITERATIONS:g} of FP64's iterations; the others are listed.\n\n" + "\n".join(parts)
    stem = name if args.backend == "cpu" else f"{name}-cuda"
    (args.out / f"{stem}.md").write_text(text)
    (args.out / f"{stem}.json").write_text(json.dumps(known_numbers(dict(known, **data)), indent=1))
    print(text)
