# Makefile: the commands people type; CMakeLists.txt is the build.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SOURCES = $(shell git ls-files '*.c' '*.h' 2>/dev/null)

.PHONY: all run test test-sanitizers test-fuzz test-examples test-aarch64 test-emu test-rocm format check-format install clean

# The program is build/wick, the library build/libwick.so.
all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j$(JOBS)

$(BUILD)/CMakeCache.txt:
	@cmake -S . -B $(BUILD) $(CMAKE_ARGS)
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json

# What is here, the proof that it computes right, and how fast it is.
run: all
	@$(BUILD)/wick info
	@$(BUILD)/wick check
	@$(BUILD)/wick bench --seconds 0.1

test: all
	@cd $(BUILD) && ctest --output-on-failure -j$(JOBS)

# ---- slower suites; .ci/run calls them all ----

test-sanitizers:
	@sh tests/sanitizers.sh $(JOBS)

test-fuzz: all
	@sh tests/fuzz.sh $(BUILD) 20

test-examples: all
	@sh tests/examples.sh $(BUILD)

test-aarch64: # needs root where the cross compiler or qemu is missing
	@sh tests/aarch64.sh $(JOBS)

# ---- the ROCm device on emulated GPUs, see emu/README.md; as root ----

test-emu:
	@sh tests/emu.sh $(JOBS)

test-rocm: all
	@sh tests/rocm.sh $(BUILD) $(JOBS)

format:
	@clang-format -i $(SOURCES)

check-format:
	@clang-format --dry-run -Werror $(SOURCES) && echo "format: fine"

install: all
	@cmake --install $(BUILD)

clean:
	@rm -rf build build-*
