# Examples run, and what each must print: EXAMPLE, then a basic regular expression for every line that matters.
# The numbers were computed by SciPy's direct solver.  SPDX-License-Identifier: BSD-3-Clause
function(halftone_example_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARGS;PRINTS")
  add_dependencies(tests example_${name})
  string(REPLACE ";" "\n" lines "${arg_PRINTS}")
  halftone_test(example_${name} examples bash ${CMAKE_CURRENT_SOURCE_DIR}/run_example.sh "${lines}" $<TARGET_FILE:example_${name}> ${arg_ARGS})
endfunction()

halftone_example_test(00_solve_file ARGS examples/data/heat_10x10.mtx PRINTS "^converged: " "^100 unknowns, [1-9][0-9]* iterations, true residual [0-9.]*e-1[0-9]$")
halftone_example_test(01_own_csr PRINTS "^converged after " "^displacement under the force: 168\\.398045$")
halftone_example_test(02_own_operator PRINTS "^converged after [1-9][0-9]" "^middle of the membrane: 0\\.062500, largest error [0-9.]*e-1[0-9]$")
halftone_example_test(03_new_values PRINTS "^step 1: dt 1, converged.*0\\.618034$" "^step 5: dt 16, converged.*0\\.115064$")
halftone_example_test(04_custom_policy PRINTS "^converged after " "^[1-9][0-9]* looks. blocks at 16 bits [1-9]")
halftone_example_test(05_history PRINTS "^iteration 50: " "^first solve: interrupted after 100 iterations" "^second solve: converged" "^history: [1-9][0-9]* entries, from [0-9.]*e-0[1-9] to [0-9.]*e-1[0-9]$")
