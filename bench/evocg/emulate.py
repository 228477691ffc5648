"""CG with products at chosen formats, in NumPy and FP64: what no program here can run (FP8), or does not record (every decision of every
iteration). Values are rounded, sums and vectors are not; so is it in the solver. SPDX-License-Identifier: BSD-3-Clause"""
import numpy as np, scipy.sparse as sp
from common import read_policy

BLOCK = 64
FORMATS = {  # mantissa bits after the point, least exponent of a normal number, largest number, bytes
    "fp32": (23, -126, 3.4e38, 4), "bf16": (7, -126, 3.4e38, 2), "e4m3": (3, -6, 448.0, 1), "e5m2": (2, -14, 57344.0, 1)}


def quantise(v, name):
    """Round to nearest, subnormals kept, too large ones to the largest."""
    bits, least, most, _ = FORMATS[name]
    _, e = np.frexp(np.abs(v))
    unit = np.ldexp(1.0, np.maximum(e - 1, least) - bits)
    return np.clip(np.round(v / unit) * unit, -most, most)


def scales(a):
    """Powers of two near the root of the diagonal: S^-1 A S^-1 has entries of at most about 1, and rounding stays symmetric."""
    return np.ldexp(1.0, np.round(np.log2(a.diagonal()) / 2).astype(int))


def rounded(a, name, keep_constants=False):
    """A at a format: scaled symmetrically, FP8 with 2^7 beside that to use its range; keep_constants: the diagonal makes up for what rounding
    takes from the row sums of the scaled matrix, as the split storage does at 16 bits."""
    s = scales(a)
    d = sp.diags(1 / s)
    hat = (d @ a @ d).tocsr()
    lift = 128.0 if FORMATS[name][3] == 1 else 1.0
    low = hat.copy()
    low.data = quantise(hat.data * lift, name) / lift
    if keep_constants: low = (low + sp.diags(np.asarray((hat - low).sum(axis=1)).ravel())).tocsr()
    d = sp.diags(s)
    return (d @ low @ d).tocsr()


class Network:
    """A policy file of the kind tiles; weights of 16 bits, as they are deployed."""
    def __init__(self, path):
        tensors, self.about, _, _ = read_policy(path)
        part = lambda name: tensors[name].astype(np.float16).astype(np.float64)
        self.w1, self.b1, self.w2, self.b2 = (part(f"backbone.{k}.{kind}") for k in (0, 2) for kind in ("weight", "bias"))
        self.wp, self.bp = part("policy.weight"), part("policy.bias")

    def decide(self, p):
        """0, 1, 2 a block: FP64, FP32, 16 bits."""
        rows = np.zeros((-(-len(p) // BLOCK), BLOCK))
        rows.ravel()[:len(p)] = p
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        h = np.maximum(np.maximum(rows @ self.w1.T + self.b1, 0) @ self.w2.T + self.b2, 0)
        return np.argmax(h @ self.wp.T + self.bp, axis=1)


def spread(levels, n): return np.repeat(levels, BLOCK)[:n]


def solve(a, products, decide=None, rtol=1e-10, most=10000, drop=0.0, low=None, truths=None):
    """truths: a list that receives ||b - A x|| / ||b|| after each iteration. CG from x = 0, b = A*1. products: A at each level, [0] in FP64. decide(k, p, r, alpha): a level a block. Or low: A throughout, with the
    true residual put in r's place whenever it has fallen by `drop`. Returns a dict."""
    n = a.shape[0]
    b = a @ np.ones(n)
    x, r = np.zeros(n), b.copy()
    p, rr = r.copy(), float(r @ r)
    goal, reference, history, decisions, replaced, broke = rtol * np.sqrt(rr), np.sqrt(rr), [1.0], [], 0, False
    norm_b, alpha, k, futile = np.sqrt(rr), 1.0, 0, 0
    while k < most:
        if low is not None: y = low @ p
        elif decide:
            level = decide(k, p, r, alpha)
            decisions.append(level.astype(np.uint8))
            each = spread(level, n)
            y = sum(m @ np.where(each == l, p, 0) for l, m in enumerate(products) if (each == l).any())
        else: y = products[0] @ p
        pap = float(p @ y)
        if not pap > 0: broke = True; break
        alpha = rr / pap
        x += alpha * p
        r -= alpha * y
        k += 1
        norm, fresh = np.sqrt(float(r @ r)), False
        history.append(norm / norm_b)
        if truths is not None: truths.append(float(np.linalg.norm(b - a @ x) / norm_b))
        if norm <= goal or (drop and norm <= drop * reference):
            claimed = norm <= goal
            if drop:
                true = b - a @ x
                change, norm = np.linalg.norm(true - r), np.linalg.norm(true)
                r, fresh, replaced = true, change > 0.1 * norm, replaced + 1
                futile = futile + 1 if norm > 0.5 * reference else 0
                reference = norm
                if futile > 3: broke = True; break
            if claimed and (not drop or norm <= goal): break
        new = float(r @ r)
        p = r + (0 if fresh else new / rr) * p
        rr = new
    return dict(iterations=k, reached=history[-1] <= rtol or np.linalg.norm(r) <= goal, broke=broke, history=history, decisions=decisions, replaced=replaced, true=float(np.linalg.norm(b - a @ x) / norm_b))
