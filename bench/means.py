"""Means that the Python programs of bench/ share. SPDX-License-Identifier: BSD-3-Clause"""
import math


def geomean(values):
    """Of those that are known and positive; NaN where there are none."""
    known = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else float("nan")
