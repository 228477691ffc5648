# A thin front for CMake: each target says what it does. SPDX-License-Identifier: BSD-3-Clause
JOBS ?= $(shell nproc)
# Every test uses all cores at times, and none measures beside others: a few at a time fill the gaps.
TEST_JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n : 8)))
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
DEMO_SIZE ?= 24
say = @printf '\n== %s\n'

.PHONY: all setup configure demo test gpu-test check format install fuzz asan bench clean

all: configure
	$(say) 'building build/libhalftone.so and build/halftone'
	@cmake --build build --parallel $(JOBS)

configure:
	@command -v cmake >/dev/null || { echo "cmake is not installed: 'make setup' installs what is missing"; exit 1; }
	$(say) 'configuring build/ (preset release)'
	@cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log; rm -f build-configure.log; exit 1; }
	@rm -f build-configure.log

setup:
	@tools/setup.sh build

demo:
	@tools/setup.sh build
	@$(MAKE) all
	$(say) 'generating a finite-element problem: quadratic tetrahedra on a graded, unstructured mesh with holes'
	build/halftone gen fem3d --order 2 --size $(DEMO_SIZE) --numbering random --seed 1 -o build/demo.mtx
	$(say) 'solving it to a true residual of 1e-10'
	build/halftone solve build/demo.mtx

test:
	@tools/setup.sh test
	$(say) 'building the library, the command, the tests and the examples'
	@cmake --preset release -DHALFTONE_TESTS=ON >/dev/null
	@cmake --build build --parallel $(JOBS) --target all tests examples
	$(say) 'running the tests'
	@ctest --test-dir build --output-on-failure --no-tests=error --parallel $(TEST_JOBS)

gpu-test:
	@tools/setup.sh test
	$(say) 'building the tests of the CUDA backend (nvcc is needed)'
	@cmake --preset release -DHALFTONE_TESTS=ON -DHALFTONE_CUDA=ON >/dev/null
	@cmake --build build --parallel $(JOBS) --target all tests
	@tools/gpu_test.sh build

check:
	@tools/setup.sh ci
	@tools/check.sh

format:
	@tools/setup.sh ci
	$(say) 'formatting every C and CUDA file with clang-format 14'
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format-14 -i

install: all
	$(say) 'installing under $(PREFIX)'
	@cmake --install build --prefix '$(PREFIX)'

asan:
	@tools/setup.sh test
	$(say) 'building with AddressSanitizer and UndefinedBehaviorSanitizer in build-asan/, then running the tests'
	@cmake --preset asan -DHALFTONE_TESTS=ON >/dev/null
	@cmake --build build-asan --parallel $(JOBS) --target all tests
	@ctest --test-dir build-asan --output-on-failure --no-tests=error --parallel $(TEST_JOBS)

fuzz:
	@tools/setup.sh ci
	$(say) 'fuzzing every target for $(FUZZ_SECONDS) s'
	@tools/fuzz.sh $(FUZZ_SECONDS)

bench: configure
	$(say) 'building the benchmarks in build/bench/'
	@cmake --build build --parallel $(JOBS) --target bench

clean:
	$(say) 'removing build folders'
	@rm -rf build build-*
