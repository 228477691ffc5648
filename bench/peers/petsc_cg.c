/* Peer: PETSc's KSPCG on a matrix in PETSc's binary format; b = A*1, x0 = 0, ||b - A x|| <= 1e-10 ||b|| (unpreconditioned norm).
 * A solve of 20 iterations comes first, so that nothing of the first use is counted against PETSc; its certificate, one residual,
 * is in the time as ours is. usage: mpirun -n 2 petsc_cg A.petsc [-pc_type none|jacobi] ; prints one line of JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <petscksp.h>

static PetscErrorCode timed_solve(KSP ksp, Mat A, Vec b, Vec x, Vec r, PetscReal *norm, PetscLogDouble *seconds) {
  PetscLogDouble start, end;
  PetscFunctionBeginUser;
  PetscCall(VecSet(x, 0));
  PetscCall(PetscTime(&start));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, norm));
  PetscCall(PetscTime(&end));
  *seconds = end - start;
  PetscFunctionReturn(0);
}

/* Seconds of one product alone. */
static PetscErrorCode timed_product(Mat A, Vec x, Vec y, PetscLogDouble *seconds) {
  enum { PRODUCTS = 20 };
  PetscLogDouble start, end;
  PetscFunctionBeginUser;
  PetscCall(PetscTime(&start));
  for (int k = 0; k < PRODUCTS; k++) PetscCall(MatMult(A, x, y));
  PetscCall(PetscTime(&end));
  *seconds = (end - start) / PRODUCTS;
  PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
  Mat A;
  Vec x, b, r;
  KSP ksp;
  PetscViewer viewer;
  PetscInt iterations, n;
  PetscReal norm_b, norm_r;
  PetscLogDouble seconds, product;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, argv[1], FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatLoad(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(x, 1));
  PetscCall(MatMult(A, x, b));
  PetscCall(VecNorm(b, NORM_2, &norm_b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetTolerances(ksp, 1e-10, 0, PETSC_DEFAULT, 200000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-10, 0, PETSC_DEFAULT, 20));
  PetscCall(timed_solve(ksp, A, b, x, r, &norm_r, &seconds));
  PetscCall(KSPSetTolerances(ksp, 1e-10, 0, PETSC_DEFAULT, 200000));
  PetscCall(timed_solve(ksp, A, b, x, r, &norm_r, &seconds));
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(timed_product(A, x, r, &product));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "{\"n\": %lld, \"iterations\": %lld, \"time_s\": %.6f, \"residual_true\": %.3e, \"product_s\": %.9f}\n",
                        (long long)n, (long long)iterations, seconds, (double)(norm_r / norm_b), product));
  PetscCall(PetscFinalize());
  return 0;
}
