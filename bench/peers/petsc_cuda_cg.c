/* Peer: PETSc's KSPCG on a GPU (aijcusparse, unpreconditioned norm). problem_file.h says how it is called and what it answers; options of
 * PETSc's come by PETSC_OPTIONS. SPDX-License-Identifier: BSD-3-Clause */
#include <petscdevice.h>
#include <petscksp.h>
#include <stdlib.h>
#include <string.h>
#include "problem_file.h"

typedef struct peer {
  Mat A;
  Vec b, x, r;
  KSP ksp;
  PetscReal norm_b;
} peer;

static PetscErrorCode load(const problem_file *file, peer *p) {
  PetscScalar *b;
  PetscInt n = (PetscInt)file->n;
  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, n, file->row_start, file->columns, file->values, &p->A));
  PetscCall(MatConvert(p->A, MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &p->A));
  PetscCall(MatSetOption(p->A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(p->A, &p->x, &p->b));
  PetscCall(VecDuplicate(p->b, &p->r));
  PetscCall(VecGetArrayWrite(p->b, &b));
  memcpy(b, file->b, (size_t)file->n * sizeof *b);
  PetscCall(VecRestoreArrayWrite(p->b, &b));
  PetscCall(VecNorm(p->b, NORM_2, &p->norm_b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode make_solver(peer *p, const char *precond, double rtol, int most) {
  PC pc;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &p->ksp));
  PetscCall(KSPSetOperators(p->ksp, p->A, p->A));
  PetscCall(KSPSetType(p->ksp, KSPCG));
  PetscCall(KSPGetPC(p->ksp, &pc));
  PetscCall(PCSetType(pc, precond));
  PetscCall(KSPSetNormType(p->ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetTolerances(p->ksp, rtol, 0, PETSC_DEFAULT, most));
  PetscCall(KSPSetFromOptions(p->ksp));
  PetscCall(KSPSetUp(p->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode wait_for_device(void) {
  PetscDeviceContext device;
  PetscFunctionBeginUser;
  PetscCall(PetscDeviceContextGetCurrentContext(&device));
  PetscCall(PetscDeviceContextSynchronize(device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode solve(peer *p) {
  PetscLogDouble start, end;
  PetscReal norm_r;
  PetscInt iterations;
  KSPConvergedReason reason;
  PetscFunctionBeginUser;
  PetscCall(VecSet(p->x, 0));
  PetscCall(wait_for_device());
  PetscCall(PetscTime(&start));
  PetscCall(KSPSolve(p->ksp, p->b, p->x));
  PetscCall(wait_for_device());
  PetscCall(PetscTime(&end));
  PetscCall(MatMult(p->A, p->x, p->r));
  PetscCall(VecAYPX(p->r, -1, p->b));
  PetscCall(VecNorm(p->r, NORM_2, &norm_r));
  PetscCall(KSPGetIterationNumber(p->ksp, &iterations));
  PetscCall(KSPGetConvergedReason(p->ksp, &reason));
  printf("%lld %d %.9f %.3e\n", (long long)iterations, reason > 0, (double)(end - start), (double)(norm_r / p->norm_b));
  fflush(stdout);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
  problem_file file;
  peer p;
  char line[64];
  if (argc != 5 || !problem_file_open(argv[1], &file)) {
    printf("a problem file, none or jacobi, a tolerance and a number of iterations are needed\n");
    return 2;
  }
  PetscCall(PetscInitializeNoArguments());
  PetscCall(load(&file, &p));
  PetscCall(make_solver(&p, argv[2], atof(argv[3]), atoi(argv[4])));
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) PetscCall(solve(&p));
  PetscCall(KSPDestroy(&p.ksp));
  PetscCall(VecDestroy(&p.b));
  PetscCall(VecDestroy(&p.x));
  PetscCall(VecDestroy(&p.r));
  PetscCall(MatDestroy(&p.A));
  PetscCall(PetscFinalize());
  return 0;
}
