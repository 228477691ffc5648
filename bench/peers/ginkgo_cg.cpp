/* Peer: Ginkgo's CG on a GPU (CSR, its own choice of the product's kernel). problem_file.h says how it is called and what it answers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ginkgo/ginkgo.hpp>
#include "problem_file.h"

using vector = gko::matrix::Dense<double>;
using matrix = gko::matrix::Csr<double, int>;

static double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/* Counts iterations, and keeps nothing else: copies of residuals would be in the time. */
struct counter : gko::log::Logger {
  mutable gko::size_type iterations = 0;
  counter() : Logger(iteration_complete_mask) {}
  void on_iteration_complete(const gko::LinOp *, const gko::LinOp *, const gko::LinOp *, const gko::size_type &iteration,
                             const gko::LinOp *, const gko::LinOp *, const gko::LinOp *, const gko::array<gko::stopping_status> *,
                             bool) const override {
    iterations = iteration;
  }
};

struct peer {
  std::shared_ptr<gko::CudaExecutor> device;
  std::shared_ptr<matrix> A;
  std::unique_ptr<vector> b, x, r, one, minus_one, norm;
  std::shared_ptr<counter> count;
  gko::size_type most;
  std::unique_ptr<gko::LinOp> solver;
};

template <class T> static gko::array<T> on_device(const peer &p, int64_t count, T *host) {
  return gko::array<T>(p.device, gko::make_array_view(p.device->get_master(), (gko::size_type)count, host));
}

static std::unique_ptr<vector> make_vector(const peer &p, int64_t n, double *host) {
  return vector::create(p.device, gko::dim<2>((gko::size_type)n, 1), on_device(p, n, host), 1);
}

static void load(const problem_file &file, peer &p) {
  p.device = gko::CudaExecutor::create(0, gko::OmpExecutor::create());
  p.A = matrix::create(p.device, gko::dim<2>((gko::size_type)file.n), on_device(p, file.nnz, file.values),
                       on_device(p, file.nnz, file.columns), on_device(p, file.n + 1, file.row_start));
  double one = 1, minus_one = -1, zero = 0;
  p.b = make_vector(p, file.n, file.b);
  p.x = p.b->clone();
  p.r = p.b->clone();
  p.one = make_vector(p, 1, &one);
  p.minus_one = make_vector(p, 1, &minus_one);
  p.norm = make_vector(p, 1, &zero);
}

static void make_solver(peer &p, bool jacobi, double rtol, long most) {
  std::shared_ptr<const gko::stop::CriterionFactory> limit =
      gko::stop::Iteration::build().with_max_iters((gko::size_type)most).on(p.device);
  std::shared_ptr<const gko::stop::CriterionFactory> goal =
      gko::stop::ResidualNorm<double>::build().with_baseline(gko::stop::mode::rhs_norm).with_reduction_factor(rtol).on(p.device);
  auto cg = gko::solver::Cg<double>::build().with_criteria(limit, goal);
  if (jacobi) cg.with_preconditioner(gko::preconditioner::Jacobi<double, int>::build().with_max_block_size(1u));
  p.solver = cg.on(p.device)->generate(p.A);
  p.count = std::make_shared<counter>();
  p.most = (gko::size_type)most;
  p.solver->add_logger(p.count);
}

static double norm_of(peer &p, const vector &v) {
  v.compute_norm2(p.norm);
  return p.device->copy_val_to_host(p.norm->get_const_values());
}

static void solve(peer &p) {
  p.x->fill(0.0);
  p.device->synchronize();
  double start = seconds_now();
  p.solver->apply(p.b, p.x);
  p.device->synchronize();
  double end = seconds_now();
  p.r->copy_from(p.b);
  p.A->apply(p.minus_one, p.x, p.one, p.r);
  double residual = norm_of(p, *p.r) / norm_of(p, *p.b);
  std::printf("%ld %d %.9f %.3e\n", (long)p.count->iterations, p.count->iterations < p.most, end - start, residual);
  std::fflush(stdout);
}

int main(int argc, char **argv) {
  problem_file file;
  peer p;
  char line[64];
  if (argc != 5 || !problem_file_open(argv[1], &file)) {
    std::printf("a problem file, none or jacobi, a tolerance and a number of iterations are needed\n");
    return 2;
  }
  try {
    load(file, p);
    make_solver(p, !std::strcmp(argv[2], "jacobi"), std::atof(argv[3]), std::atol(argv[4]));
    std::printf("ready\n");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) solve(p);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
