"""Training as the authors' public code does it, written anew in NumPy: an agent of PPO for every column block, all of which step one network in
turn; separate networks for policy and value; states standardised; p rounded with the matrix and multiplied in the low format. docs/evocg.md has the
sources and what is known of them. SPDX-License-Identifier: BSD-3-Clause"""
import time
import numpy as np, scipy.sparse as sp

BLOCK, COSTS, NAMES = 64, np.array([1.0, 0.5, 0.25]), ("fp64", "fp32", "bf16")
GAMMA, LAMBDA, CLIP, VALUE, ENTROPY, RATE, NORM = 0.99, 0.95, 0.2, 0.25, 0.02, 1e-4, 0.5
UPDATE, EPOCHS, BATCH, ONE = 1024, 10, 128, np.eye(3, dtype=np.float32)
WEIGHTS = (10.0, 0.2, 30.0)  # of equation 11
TOP = 1.8405e19  # about the root of BF16's largest number: where the largest entry of a column, or of p's block, is scaled to


def bf16(v):
    """To nearest, ties to even; v is FP32 and is changed."""
    u = v.view(np.uint32)
    u += 0x7FFF + ((u >> 16) & 1)
    u &= 0xFFFF0000
    return v


class Stores:
    """A at the three levels, scaled by column, and products that read each block at its own. round_p: p is rounded too, scaled by
    block, and products are made in the low format and added in FP64; else the values alone are rounded, as here everywhere else."""
    def __init__(self, a, round_p=True):
        c = sp.csc_matrix(a)
        c.sort_indices()
        self.n, self.round_p, self.tiles, self.exact = c.shape[0], round_p, -(-c.shape[0] // BLOCK), sp.csr_matrix(a)
        self.column = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(c.indptr))
        scale = TOP / (np.abs(c).max(axis=0).toarray().ravel() + 1e-12)
        self.values = [None, (c.data * scale[self.column]).astype(np.float32)]
        self.values.append(bf16(self.values[1].copy()))
        self.back = 1 / scale
        ends = c.indptr[np.minimum(np.arange(self.tiles + 1) * BLOCK, self.n)]
        self.entries = np.diff(ends)
        self.sum = sp.csc_matrix((np.zeros(c.nnz), c.indices, c.indptr), shape=c.shape)
        if not round_p: self.low = [None] + [sp.csr_matrix(sp.csc_matrix((v * self.back[self.column], c.indices, c.indptr), shape=c.shape)) for v in self.values[1:]]

    def product(self, levels, p):
        if not levels.any(): return self.exact @ p
        each, y = np.repeat(levels, BLOCK)[:self.n], np.zeros(self.n)
        if (levels == 0).any(): y += self.exact @ np.where(each == 0, p, 0)
        if not self.round_p:
            for l in np.unique(levels[levels > 0]): y += self.low[l] @ np.where(each == l, p, 0)
            return y
        factor = np.zeros(self.n)
        for l in np.unique(levels[levels > 0]):
            mine = levels == l
            at = slice(None) if mine.all() else np.flatnonzero(np.repeat(mine, self.entries))
            largest = np.maximum.reduceat(np.abs(p), np.arange(0, self.n, BLOCK))
            scale = np.repeat(TOP / (largest + 1e-12), BLOCK)[:self.n]
            q = (p * scale).astype(np.float32)
            if l == 2: q = bf16(q)
            product = self.values[l][at] * q[self.column[at]]
            self.sum.data[at] = bf16(product) if l == 2 else product
            factor[each == l] = (self.back / scale)[each == l]
        return y + self.sum @ factor


class Solve:
    """CG from x = 0 with b = A*1, a level a block and product: the episode. Its limit is in iterations."""
    def __init__(self, stores, limit, rtol=1e-10):
        self.stores, self.limit, self.rtol = stores, limit, rtol
        self.b = stores.exact @ np.ones(stores.n)
        self.norm_b = np.linalg.norm(self.b)

    def begin(self):
        self.x, self.r, self.p, self.k = np.zeros(self.stores.n), self.b.copy(), self.b.copy(), 0
        self.rr = float(self.r @ self.r)
        return self.state()

    def state(self):
        """Each block of p less its mean by its deviation from that mean, in FP32: entries of a block whose values are all alike stay below 8."""
        rows = np.zeros((self.stores.tiles, BLOCK), np.float32)
        rows.ravel()[:self.stores.n] = self.p
        rows -= rows.mean(axis=1, keepdims=True)
        return rows / np.maximum(np.sqrt((rows * rows).mean(axis=1, keepdims=True)), 1e-12)

    def step(self, levels):
        """The reward and whether the episode is over; self.converged and self.residual (the recursion's, by b's norm) tell the rest."""
        y = self.stores.product(levels, self.p)
        py, self.converged, self.k = float(self.p @ y), False, self.k + 1
        cost = WEIGHTS[1] * COSTS[levels].mean()
        if not abs(py) > 1e-307: return -cost, True
        alpha = self.rr / py
        self.x += alpha * self.p
        self.r -= alpha * y
        new = float(self.r @ self.r)
        self.residual = np.sqrt(new) / self.norm_b
        self.converged = self.residual < self.rtol
        reward = WEIGHTS[0] * 0.5 * np.log(self.rr / new) - cost + WEIGHTS[2] * self.converged
        self.p = self.r + new / self.rr * self.p
        self.rr = new
        return reward, self.converged or self.k >= self.limit or not np.isfinite(new)

    def true_residual(self): return float(np.linalg.norm(self.b - self.stores.exact @ self.x) / self.norm_b)


def orthogonal(rng, rows, columns, gain):
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return gain * (q if rows >= columns else q.T)


class Network:
    """Policy and value, each of two ReLU layers of 64 and of its own; all parameters lie in one vector. first: the policy's last biases."""
    SHAPES = dict(w1=(2, BLOCK, 64), b1=(2, 1, 64), w2=(2, 64, 64), b2=(2, 1, 64), wp=(64, 3), bp=(3,), wv=(64, 1), bv=(1,))

    def __init__(self, rng, first):
        self.size = sum(int(np.prod(s)) for s in self.SHAPES.values())
        self.flat, self.gradient = np.zeros(self.size, np.float32), np.zeros(self.size, np.float32)
        self.part, self.slope = self.views(self.flat), self.views(self.gradient)
        for name in ("w1", "w2"):
            for net in (0, 1): self.part[name][net] = orthogonal(rng, 64, 64, np.sqrt(2))
        self.part["wp"][:] = orthogonal(rng, 64, 3, 0.1)
        self.part["wv"][:] = orthogonal(rng, 64, 1, np.sqrt(2))
        self.part["bp"][:] = first

    def views(self, flat):
        out, at = {}, 0
        for name, shape in self.SHAPES.items():
            size = int(np.prod(shape))
            out[name], at = flat[at:at + size].reshape(shape), at + size
        return out

    def forward(self, states):
        p = self.part
        self.h1 = np.maximum(np.matmul(states, p["w1"]) + p["b1"], 0)
        self.h2 = np.maximum(np.matmul(self.h1, p["w2"]) + p["b2"], 0)
        logits = self.h2[0] @ p["wp"] + p["bp"]
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), (self.h2[1] @ p["wv"] + p["bv"]).ravel()

    def backward(self, states, by_logits, by_value):
        p, s = self.part, self.slope
        s["wp"][:], s["bp"][:] = self.h2[0].T @ by_logits, by_logits.sum(axis=0)
        s["wv"][:], s["bv"][:] = self.h2[1].T @ by_value[:, None], by_value.sum()
        d2 = np.empty_like(self.h2)
        np.matmul(by_logits, p["wp"].T, out=d2[0])
        np.multiply(by_value[:, None], p["wv"].T, out=d2[1])
        d2 *= self.h2 > 0
        np.matmul(self.h1.transpose(0, 2, 1), d2, out=s["w2"])
        s["b2"][:, 0] = d2.sum(axis=1)
        d1 = np.matmul(d2, p["w2"].transpose(0, 2, 1))
        d1 *= self.h1 > 0
        np.matmul(states.T, d1, out=s["w1"])
        s["b1"][:, 0] = d1.sum(axis=1)


class Adam:
    def __init__(self, size): self.m, self.v, self.t = np.zeros(size, np.float32), np.zeros(size, np.float32), 0

    def step(self, net):
        g = net.gradient
        norm = np.sqrt(float(g @ g))
        if norm > NORM: g *= NORM / (norm + 1e-6)
        self.t += 1
        self.m += np.float32(0.1) * (g - self.m)
        self.v += np.float32(0.001) * (g * g - self.v)
        root = np.sqrt(self.v)
        root *= np.float32(1 / np.sqrt(1 - 0.999 ** self.t))
        root += np.float32(1e-8)
        net.flat -= np.float32(RATE / (1 - 0.9 ** self.t)) * self.m / root


def advantages(rewards, going, values):
    """Generalised, of one agent; values has one more entry, what the state after the last is thought worth."""
    out, a = np.empty(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        a = rewards[i] + GAMMA * going[i] * values[i + 1] - values[i] + GAMMA * LAMBDA * going[i] * a
        out[i] = a
    return out


def slopes(net, states, actions, adv, old, target):
    """The gradient of a minibatch's loss: clipped policy, value and entropy. old: logarithms of the actions' chances when the update began."""
    log, value = net.forward(states)
    p, n = np.exp(log), len(actions)
    ratio = np.exp(np.minimum(log[np.arange(n), actions] - old, 80))  # FP32's range
    free = np.where(adv > 0, ratio < 1 + CLIP, ratio > 1 - CLIP)
    by = -(adv * ratio * free)[:, None] * (ONE[actions] - p)
    by += np.float32(ENTROPY) * p * (log - (p * log).sum(axis=1, keepdims=True))
    net.backward(states, by / np.float32(n), np.float32(2 * VALUE / n) * (value - target))


def judged(net, states, actions, rewards, going):
    """Of one tile's transitions: logarithms of the actions' chances, advantages and what values should be, by the network as it is. states has one more row."""
    log, values = net.forward(states)
    adv = advantages(rewards, going, values.astype(np.float64))
    return log[np.arange(len(rewards)), actions], adv, (adv + values[:-1]).astype(np.float32)


def descend(net, adam, states, actions, judgement, batch, rng):
    """10 passes over these transitions."""
    old, adv, target = judgement
    adv = ((adv - adv.mean()) / (adv.std() + 1e-8)).astype(np.float32)
    for _ in range(EPOCHS):
        order = rng.permutation(len(actions))
        for at in range(0, len(order), batch):
            pick = order[at:at + batch]
            slopes(net, states[pick], actions[pick], adv[pick], old[pick], target[pick])
            adam.step(net)


def update(net, adams, tiles, states, actions, rewards, going, rng):
    """Each agent's in turn: what it compares with is the network as the agents before left it. Or, where tiles is None, one agent's: all tiles' transitions are its examples."""
    each = lambda tile: np.ascontiguousarray(states[:, tile])
    if tiles is None:
        got = [judged(net, each(tile), actions[:, tile], rewards, going) for tile in range(actions.shape[1])]
        flat = np.concatenate([each(tile)[:-1] for tile in range(actions.shape[1])])
        descend(net, adams.setdefault(0, Adam(net.size)), flat, actions.T.ravel(), [np.concatenate(v) for v in zip(*got)], BATCH * actions.shape[1], rng)
    for tile in () if tiles is None else tiles:
        descend(net, adams.setdefault(tile, Adam(net.size)), each(tile)[:-1], actions[:, tile], judged(net, each(tile), actions[:, tile], rewards, going), BATCH, rng)


def draw(net, state, rng):
    log, _ = net.forward(state)
    return np.minimum((np.cumsum(np.exp(log), axis=1) < rng.random((len(log), 1))).sum(axis=1), 2)


def likeliest(net, state, rng=None): return np.argmax(net.forward(state)[0], axis=1)


def episode(solve, net, choose, rng):
    """Return of a solve that learns nothing."""
    state, total, over = solve.begin(), 0.0, False
    while not over:
        reward, over = solve.step(choose(net, state, rng))
        total, state = total + reward, solve.state()
    return total


def train(solve, first, episodes, agents, rng, seconds, evaluate=5, one=False):
    """The network at the end and the one that did best when evaluated (every 20 episodes' limit of iterations, with drawn actions). agents: how many blocks,
    drawn anew, learn in an update; 0 is all. one: a single agent learns from all blocks. Returns both and a record."""
    tiles, began = solve.stores.tiles, time.monotonic()
    net, adams = Network(rng, first), {}
    states, actions = np.empty((UPDATE + 1, tiles, BLOCK), np.float32), np.empty((UPDATE, tiles), np.int64)
    rewards, going, filled = np.empty(UPDATE), np.empty(UPDATE), 0
    record, best, best_return, evaluated, done, lengths = [], net.flat.copy(), -np.inf, 0, 0, []
    state, steps = solve.begin(), episodes * solve.limit
    for t in range(steps):
        states[filled], actions[filled] = state, draw(net, state, rng)
        rewards[filled], over = solve.step(actions[filled])
        going[filled], filled = not over, filled + 1
        if over: lengths.append(solve.k)
        state = solve.begin() if over else solve.state()
        if filled == UPDATE:
            states[UPDATE] = state
            p = np.exp(net.forward(states[::64].reshape(-1, BLOCK))[0])
            record.append(dict(entropy=float(-(p * np.log(p + 1e-30)).sum(axis=1).mean()), mix=[float((actions == l).mean()) for l in range(3)], iterations=float(np.mean(lengths)) if lengths else None))
            lengths = []
            learning = range(tiles) if not agents or agents >= tiles else np.sort(rng.choice(tiles, agents, replace=False))
            update(net, adams, None if one else learning, states, actions, rewards, going, rng)
            filled = 0
        if over and t - evaluated >= 20 * solve.limit:
            evaluated = t
            got = np.mean([episode(solve, net, draw, rng) for _ in range(evaluate)])
            if got > best_return: best, best_return = net.flat.copy(), got
            state = solve.begin()
        done = t + 1
        if time.monotonic() - began > seconds: break
    last = net.flat.copy()
    return net, last, best, dict(updates=len(record), iterations=done, share=done / steps, seconds=time.monotonic() - began, best_return=float(best_return), record=record)
