#!/usr/bin/env python3
"""Every file of a folder of real and nasty matrices is read, or refused, as its MANIFEST.tsv says.

usage: check_manifest.py [LIBRARY [FOLDER]]   (build/libhalftone.so, $HALFTONE_MATRICES)
Without a folder: exit 77 (skipped). Values are compared with SciPy's reader where it is installed and agrees to read the file.
SPDX-License-Identifier: BSD-3-Clause
"""
import csv
import ctypes as c
import gzip
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OK, BAD_FILE, BAD_FORMAT, BAD_MATRIX, UNSUPPORTED = 0, 4, 5, 6, 8
SYMMETRIC, NEARLY, UNSYMMETRIC = 0, 1, 2

# What the reader must say of the nasty files: a status and words of its sentence, or a symmetry.
REFUSED = {
    "bannerless_vem1": (BAD_FORMAT, "banner"), "cholmod_c": (UNSUPPORTED, "complex"), "cholmod_empty": (BAD_FORMAT, "empty"),
    "cholmod_mangle2": (BAD_FORMAT, "junk"), "cholmod_mangle3": (BAD_FORMAT, "junk"), "cholmod_mangle4": (BAD_FORMAT, "junk"),
    "cholmod_mangle6": (BAD_FORMAT, "banner"), "cholmod_tcov_c30lo_singular": (BAD_FORMAT, "banner"), "cholmod_tcov_crud1": (BAD_FORMAT, ""),
    "cholmod_tcov_fullcrud": (BAD_FORMAT, "3 of the 4"), "cholmod_tcov_fullcrud1": (BAD_FORMAT, "banner"),
    "cholmod_tcov_fullcrud2": (BAD_FORMAT, "'garbled'"), "cholmod_tcov_fullcsa": (UNSUPPORTED, "complex"),
    "cholmod_tcov_fullrza": (UNSUPPORTED, "skew"), "cholmod_tcov_int_overflow": (BAD_FORMAT, "banner"),
    "cholmod_tcov_mega": (BAD_FORMAT, "banner"), "cholmod_tcov_rza": (UNSUPPORTED, "skew"), "fmm_2col_array": (BAD_MATRIX, "square"),
    "fmm_invalid_bad_symmetry": (BAD_FORMAT, "symmetry"), "fmm_invalid_bad_value_3": (UNSUPPORTED, "vector"),
    "fmm_invalid_bad_value_4": (UNSUPPORTED, "vector"), "fmm_invalid_dimensions_out_of_range_2": (BAD_FORMAT, "size line"),
    "fmm_invalid_dimensions_out_of_range_3": (BAD_FORMAT, "size line"), "fmm_invalid_indices_out_of_range_1": (BAD_FORMAT, ":5: row index 5000"),
    "fmm_invalid_indices_out_of_range_2": (BAD_FORMAT, ":6: column index 2000"), "fmm_invalid_indices_out_of_range_4": (BAD_FORMAT, "column index 0"),
    "fmm_invalid_indices_out_of_range_6": (BAD_FORMAT, "column index -2"), "fmm_invalid_matrix_coord_too_long": (BAD_FORMAT, "more entries"),
    "fmm_invalid_truncated_header_1": (BAD_FORMAT, "size line"), "fmm_invalid_truncated_lines": (BAD_FORMAT, "truncated"),
    "fmm_invalid_vector_array_too_long": (UNSUPPORTED, "vector"), "fmm_invalid_vector_index_out_of_range_2": (UNSUPPORTED, "vector"),
    "fmm_invalid_vector_negative_length": (UNSUPPORTED, "vector"), "fmm_overflow_dim_gt_int64": (UNSUPPORTED, "too large"),
    "fmm_overflow_value_gt_float128": (BAD_MATRIX, "1E9999"), "fmm_py_dim_over_32_bit": (UNSUPPORTED, "too large"),
    "fmm_py_vector_coordinate_real_general": (UNSUPPORTED, "vector"), "hb_valid_bcsstk02": (UNSUPPORTED, "Harwell-Boeing"),
    "headerless_mesh2e1": (BAD_FORMAT, "banner"), "lagraph_complex": (UNSUPPORTED, "complex"), "lagraph_full_noheader": (BAD_FORMAT, "banner"),
    "lagraph_mangled11": (BAD_MATRIX, "square"), "lagraph_mangled13": (BAD_MATRIX, "square"), "lagraph_mangled14": (BAD_MATRIX, "square"),
    "lagraph_mangled16": (BAD_FORMAT, ""), "lagraph_mangled2": (BAD_FORMAT, "mangled"), "lagraph_mangled3": (BAD_FORMAT, "mangled"),
    "lagraph_mangled4": (BAD_FORMAT, "mangled"), "lagraph_mangled5": (UNSUPPORTED, "hermitian"), "lagraph_mangled7": (BAD_FORMAT, "value is missing"),
    "lagraph_mangled_format": (BAD_FORMAT, "pattern"), "lfs_pointer_1138_bus": (BAD_FORMAT, "LFS"), "lis_testmat_extended": (UNSUPPORTED, "Lis"),
    "rmatrix_wrong": (BAD_MATRIX, "square"), "zero_based_mesh3e1_pattern": (BAD_FORMAT, "column index 0"),
}
READ = {
    "cholmod_can___24": SYMMETRIC, "cholmod_tcov_1e99": SYMMETRIC, "fmm_eye3_str": SYMMETRIC, "fmm_py_windows_newlines": SYMMETRIC,
    "integer_symmetric_jazz": SYMMETRIC, "lagraph_LFAT5_two": SYMMETRIC, "lagraph_mangled_bool": UNSYMMETRIC, "lagraph_mangled_int8": UNSYMMETRIC,
    "lagraph_matrix_bool": UNSYMMETRIC, "lagraph_structure": UNSYMMETRIC, "pattern_1138_bus": SYMMETRIC,
    "symmetric_banner_both_triangles_vem1": SYMMETRIC, "synth_1x1": SYMMETRIC, "synth_fortran_d_exponent": SYMMETRIC,
    "synth_fp32_subnormal_spd": SYMMETRIC, "synth_nearly_symmetric_general": NEARLY, "synth_symmetric_mixed_triangles": SYMMETRIC,
    "synth_uppercase_banner": SYMMETRIC, "synth_utf8_bom": SYMMETRIC, "synth_zero_diagonal": SYMMETRIC,
}


class Library:
    def __init__(self, path):
        self.lib = c.CDLL(str(path))
        for name in ("ht_matrix_rows", "ht_matrix_nonzeros"):
            getattr(self.lib, name).restype = c.c_int64
        self.lib.ht_context_error.restype = c.c_char_p
        self.ctx = c.c_void_p()
        assert self.lib.ht_context_create(c.byref(self.ctx)) == OK

    def read(self, path):
        """(status, sentence, matrix handle)"""
        matrix = c.c_void_p()
        status = self.lib.ht_matrix_read(self.ctx, str(path).encode(), c.byref(matrix))
        return status, self.lib.ht_context_error(self.ctx).decode() if status else "", matrix

    def vector(self, path, n):
        values = (c.c_double * n)()
        status = self.lib.ht_vector_read(self.ctx, str(path).encode(), None, c.c_int64(n), values)
        return status, self.lib.ht_context_error(self.ctx).decode() if status else ""

    def arrays(self, matrix):
        import numpy as np
        n, nnz = self.lib.ht_matrix_rows(matrix), self.lib.ht_matrix_nonzeros(matrix)
        p, j, v = c.POINTER(c.c_int64)(), c.POINTER(c.c_int32)(), c.POINTER(c.c_double)()
        self.lib.ht_matrix_csr(matrix, c.byref(p), c.byref(j), c.byref(v))
        take = np.ctypeslib.as_array
        return take(p, (n + 1,)), take(j, (nnz,)), take(v, (nnz,))


def same_as_scipy(library, matrix, path):
    """None, or what differs from SciPy's matrix."""
    try:
        import scipy.io
        with (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")) as f:
            reference = scipy.io.mmread(f)
    except Exception:
        return None
    import numpy as np
    import scipy.sparse
    if "both_triangles" in path.name:  # SciPy mirrors what is there twice already
        half = scipy.sparse.tril(reference).tocsr() * 0.5
        reference = half + scipy.sparse.tril(half, -1).T + scipy.sparse.diags(half.diagonal())
    reference = scipy.sparse.csr_matrix(reference).astype(float)
    reference.sum_duplicates()
    start, columns, values = library.arrays(matrix)
    if not np.array_equal(start, reference.indptr) or not np.array_equal(columns, reference.indices):
        return "pattern"
    return None if np.array_equal(values, reference.data) else "values"


def check_nasty(library, name, path, status, sentence, matrix):
    if name.startswith("rbio_mangled"):
        return None if status in (BAD_FORMAT, UNSUPPORTED) and "Boeing" in sentence else "must be refused as Rutherford-Boeing"
    if name in REFUSED:
        wanted, words = REFUSED[name]
        return None if status == wanted and words in sentence else f"must be refused with status {wanted} and '{words}'"
    if name in READ:
        if status != OK:
            return "must be read"
        found = library.lib.ht_matrix_symmetry(matrix)
        return None if found == READ[name] else f"must have symmetry {READ[name]}, and has {found}"
    return "is not known to this script"


def main():
    library = Library(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "libhalftone.so")
    folder = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("HALFTONE_MATRICES")
    if not folder or not (pathlib.Path(folder) / "MANIFEST.tsv").exists():
        print("skipped: HALFTONE_MATRICES names no folder with a MANIFEST.tsv")
        return 77
    folder, wrong, count = pathlib.Path(folder), 0, 0
    for row in csv.DictReader(open(folder / "MANIFEST.tsv"), delimiter="\t"):
        path, name = folder / row["file"], row["name"]
        if row["cols"] == "1" and "vector" in row["symmetry"]:
            status, sentence = library.vector(path, int(row["rows"]))
            complaint = None if status == OK else "must be read as a vector"
        else:
            begin = time.time()
            status, sentence, matrix = library.read(path)
            took = time.time() - begin
            if row["file"].startswith("nasty/"):
                complaint = check_nasty(library, name, path, status, sentence, matrix)
            elif status != OK:
                complaint = "must be read"
            else:
                found = library.lib.ht_matrix_symmetry(matrix)
                complaint = "must be symmetric" if row["symmetry"] == "symmetric" and found != SYMMETRIC else None
                if library.lib.ht_matrix_rows(matrix) != int(row["rows"]):
                    complaint = "has a wrong number of rows"
            if complaint is None and status == OK:
                difference = same_as_scipy(library, matrix, path)
                complaint = difference and f"differs from SciPy's in {difference}"
            if complaint is None and took > 5:
                complaint = f"took {took:.1f} s"
            if complaint is None and "\n" in sentence:
                complaint = "more than one line"
            if "-v" in sys.argv and status:
                print(f"{name}: {sentence.replace(str(folder) + '/', '')}")
            library.lib.ht_matrix_destroy(matrix)
        count += 1
        if complaint:
            wrong += 1
            print(f"WRONG: {row['file']} {complaint} (status {status}: {sentence})")
    print(f"{count - wrong} of {count} files read or refused as they must be")
    return 1 if wrong or not count else 0


sys.exit(main())
