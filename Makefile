# Makefile: the commands people type; CMakeLists.txt is the build.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all
all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j$(JOBS)

$(BUILD)/CMakeCache.txt:
	@cmake -S . -B $(BUILD)
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json

# The tests, with warnings as errors, in a build of their own: what `make` built is left alone.
.PHONY: test
test:
	@cmake -S . -B $(BUILD)-test -DWICK_WERROR=ON
	@cmake --build $(BUILD)-test -j$(JOBS)
	@cd $(BUILD)-test && ctest --output-on-failure -j$(JOBS)
