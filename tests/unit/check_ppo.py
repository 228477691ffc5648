#!/usr/bin/env python3
"""The loss, its gradient and one step of Adam of tests/unit/test_ppo.c, done again in NumPy.

usage: check_ppo.py UNIT_PPO.  SPDX-License-Identifier: BSD-3-Clause
"""
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("no NumPy: skipped")
    sys.exit(77)


def read(program):
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([program, "--dump", file.name], check=True)
        return {words[0]: np.array(words[1:], float) for words in (line.split() for line in file)}


def main():
    d = read(sys.argv[1])
    inputs, hidden, actions, transitions, tiles = (int(v) for v in d["shape"])
    clip, value_weight, entropy_weight, rate, gradient_clip = d["settings"]
    shapes = [(hidden, inputs), (hidden,), (hidden, hidden), (hidden,), (actions, hidden), (actions,), (1, hidden), (1,)]
    w, at = [], 0
    for shape in shapes:
        w.append(d["weights"][at:at + np.prod(shape)].reshape(shape))
        at += np.prod(shape)
    assert at == d["weights"].size

    present = (np.arange(tiles) < d["rows"][:, None]).ravel()
    weight = np.repeat(1 / (transitions * d["rows"]), tiles)[present]
    owner = np.repeat(np.arange(transitions), tiles)[present]
    x = d["state"].reshape(-1, inputs)[present]
    action, old = d["action"].astype(int)[present], d["old"][present]
    advantage = d["advantage"][owner]

    z1 = x @ w[0].T + w[1]
    h1 = np.maximum(z1, 0)
    z2 = h1 @ w[2].T + w[3]
    h2 = np.maximum(z2, 0)
    logits, v = h2 @ w[4].T + w[5], (h2 @ w[6].T + w[7])[:, 0]
    logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    p = np.exp(logp)
    entropy = -(p * logp).sum(1)
    ratio = np.exp(logp[np.arange(len(action)), action] - old)
    surrogate = np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)
    miss = np.bincount(owner, v, transitions) / d["rows"] - d["target"]
    parts = [-(weight * surrogate).sum(), (miss**2).mean(), (weight * entropy).sum()]
    loss = parts[0] + value_weight * parts[1] - entropy_weight * parts[2]

    slope = np.where(surrogate == ratio * advantage, -weight * advantage * ratio, 0)
    dlogits = slope[:, None] * (np.eye(actions)[action] - p) + entropy_weight * weight[:, None] * p * (logp + entropy[:, None])
    dv = value_weight * 2 * miss[owner] * weight
    dh2 = (dlogits @ w[4] + dv[:, None] * w[6]) * (z2 > 0)
    dh1 = (dh2 @ w[2]) * (z1 > 0)
    grads = [dh1.T @ x, dh1.sum(0), dh2.T @ h1, dh2.sum(0), dlogits.T @ h2, dlogits.sum(0), dv[None] @ h2, dv.sum(keepdims=True)]
    gradient = np.concatenate([g.ravel() for g in grads])

    cut = gradient * min(1, gradient_clip / np.linalg.norm(gradient))
    m, s = 0.1 * cut / (1 - 0.9), 0.001 * cut**2 / (1 - 0.999)  # the first step: both moments with their bias taken out
    after = d["weights"] - rate * m / (np.sqrt(s) + 1e-8)

    # Sums of up to 63 tiles and a few terms each, in single precision; Adam divides a gradient by its own size.
    tolerance = 64 * 8 * 2.0**-24
    found = {"loss": np.abs(np.array([loss] + parts) - d["loss"]).max(), "gradient": np.abs(gradient - d["gradient"]).max()}
    sure = np.abs(cut) > 100 * tolerance
    found["step"] = np.abs(after - d["after"])[sure].max() / rate
    print(found, "of", tolerance, "; weights whose step is compared:", sure.sum())
    return 0 if max(found["loss"], found["gradient"]) < tolerance and found["step"] < 0.01 and sure.sum() > 20 else 1


if __name__ == "__main__":
    sys.exit(main())
