"""Matrices that no kind of `halftone gen` gives, for matrices.tsv. SPDX-License-Identifier: BSD-3-Clause"""
import shlex, subprocess
import numpy as np, scipy.sparse as sp


def diagonal(n, low, high):
    """bcsstm39, t3dl_e: entries from low to high, log-uniform, by a fixed permutation."""
    return sp.diags(low * (high / low) ** np.random.default_rng(1).random(int(n)), format="csr")


def path(n, fixed):
    """-u'' on n points with spacing 1: u = 0 beyond the ends, or nothing flowing out."""
    middle = np.full(n, 2.0)
    if not fixed: middle[[0, -1]] = 1
    return sp.diags([middle, -np.ones(n - 1), -np.ones(n - 1)], [0, 1, -1], format="csr")


def lobatto(order, cells):
    """-Laplace u on a square of cells x cells finite elements with Lobatto's shape functions (hats, and integrals of Legendre's polynomials) of an order up to 3,
    u = 0 around: Dubcova1 (2, 64) and Dubcova2 (2, 128) but for the order of the unknowns, Dubcova3 (3, 128) but for the signs of odd functions too. Entries that are 0 are
    stored where functions meet, as there."""
    order, cells = int(order), int(cells)
    q, c = np.sqrt(1.5) / 3, np.sqrt(2.5) / 15  # integrals over [-1, 1] of a hat with the second and the third function
    mass = np.array([[2 / 3, 1 / 3, -q, c], [1 / 3, 2 / 3, -q, -c], [-q, -q, 2 / 5, 0], [c, -c, 0, 2 / 21]])
    stiffness = np.array([[0.5, -0.5, 0, 0], [-0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    e, more = np.arange(cells)[:, None], np.arange(order - 1)
    of = np.hstack([e - 1, np.where(e < cells - 1, e, -1), cells - 1 + (order - 1) * e + more])  # unknowns of each cell; -1: none
    i, j = np.repeat(of, order + 1, axis=1).ravel(), np.tile(of, (1, order + 1)).ravel()
    keep, n = (i >= 0) & (j >= 0), order * cells - 1
    m, k, one = (sp.csr_matrix((np.tile(v[:order + 1, :order + 1].ravel(), cells)[keep], (i[keep], j[keep])), shape=(n, n)) for v in (mass, stiffness, np.ones((4, 4))))
    a = (sp.kron(k, m) + sp.kron(m, k)).tocsr()
    pattern = sp.kron(one, one).tocsr()
    pattern.data[:] = 1.0
    a = (a + pattern).tocsr()  # sums keep what is stored in either
    a.data -= 1.0
    a.data[np.abs(a.data) < 1e-12] = 0.0
    return a


def heat(nx, ny):
    """M + 0.1 K of linear triangles, two to a square with side 1/512, nothing flowing out: parabolic_fem (513, 1025) but for the order of the unknowns."""
    nx, ny = int(nx), int(ny)
    at = np.arange(nx * ny).reshape(ny, nx)
    a, b, c, d = (v.ravel() for v in (at[:-1, :-1], at[:-1, 1:], at[1:, :-1], at[1:, 1:]))
    k = 0.1 * np.array([[0.5, -0.5, 0], [-0.5, 1, -0.5], [0, -0.5, 0.5]]) + (np.ones((3, 3)) + np.eye(3)) / 24 / 512 ** 2
    corners = np.vstack([np.stack([a, b, d], 1), np.stack([a, c, d], 1)])
    return sp.coo_matrix((np.tile(k.ravel(), len(corners)), (np.repeat(corners, 3, axis=1).ravel(), np.tile(corners, (1, 3)).ravel())), shape=(nx * ny,) * 2).tocsr()


def slab(nx, ny, nz, stiff, soft):
    """Seven points, `stiff` along x with nothing flowing out, `soft` along the others with u = 0 beyond: the grids, patterns and values of apache1 (8 101 100 90000 4) and
    apache2 (8 297 301 30000 12), whose boundaries are not known."""
    nx, ny, nz = int(nx), int(ny), int(nz)
    along = lambda x, y, z: sp.kron(z, sp.kron(y, x))
    return (stiff * along(path(nx, False), sp.eye(ny), sp.eye(nz)) + soft * along(sp.eye(nx), path(ny, True), sp.eye(nz)) + soft * along(sp.eye(nx), sp.eye(ny), path(nz, True))).tocsr()


KINDS = dict(diagonal=diagonal, lobatto=lobatto, heat=heat, slab=slab)


def here(recipe):
    """Whether a recipe is of this file and not of `halftone gen`. Of what `halftone gen` makes `shift X RECIPE` has X added to the diagonal, and `ground I RECIPE` has not row and
    column I."""
    return recipe.split()[0] in (*KINDS, "shift", "ground")


def write(halftone, recipe, file):
    """To a file .npz."""
    kind, *numbers = shlex.split(recipe)
    if kind in ("shift", "ground"):
        subprocess.run([halftone, "gen", *numbers[1:], "-o", file, "--quiet"], check=True)
        a = sp.load_npz(file).tocsr()
        rest = np.delete(np.arange(a.shape[0]), int(numbers[0])) if kind == "ground" else None
        a = (a + float(numbers[0]) * sp.eye(a.shape[0])).tocsr() if kind == "shift" else a[rest][:, rest]
    else: a = KINDS[kind](*map(float, numbers))
    sp.save_npz(file, a)
