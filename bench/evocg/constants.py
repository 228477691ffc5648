#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Policies for gpu_batch.sh that always say the same, made of the network of a trained one.

usage: bench/evocg/constants.py POLICY.safetensors FOLDER
constantN: FP64, looking every N iterations; constant32 and constant16 say FP32 and 16 bits every 64.
"""
from common import *

WAYS = {"constant64": (64, 0), "constant8": (8, 0), "constant4096": (4096, 0), "constant32": (64, 1), "constant16": (64, 2)}


def main():
    if len(sys.argv) != 3: sys.exit(__doc__)
    for name, (interval, action) in WAYS.items(): constant_policy(sys.argv[1], pathlib.Path(sys.argv[2]) / f"{name}.safetensors", interval, action)


if __name__ == "__main__": main()
