# Shortcuts. Cargo alone is enough: cargo build --release, cargo test --workspace.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help setup build demo test coverage guide dist deb lint siw fuzz bench ci

help: ## List these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## Check for a C compiler and Rust; install build-essential and libpcap-dev where possible
	@.ci/setup

demo: setup ## Compile weft with little optimisation, explain a capture, test two responders
	@.ci/compile 'weft with little optimisation (about 3 minutes the first time)' $(CARGO) build --locked --bin weft
	@$(TARGET)/debug/weft demo

build: setup ## Compile the optimised binary, target/release/weft (about 6 minutes the first time)
	$(CARGO) build --release --locked --bin weft

test: setup ## Run all tests (with cargo-nextest if it is installed)
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo '$(CARGO) nextest run --workspace --no-fail-fast && $(CARGO) test --workspace --doc'; \
		$(CARGO) nextest run --workspace --no-fail-fast && $(CARGO) test --workspace --doc; \
	else \
		echo '$(CARGO) test --workspace --no-fail-fast'; \
		$(CARGO) test --workspace --no-fail-fast; \
	fi

coverage: build ## Run the tests and all cases against all faults; renew the table of what they prove
	rm -rf $(TARGET)/coverage && mkdir -p $(TARGET)/coverage
	WEFT_COVERAGE=$(abspath $(TARGET))/coverage $(MAKE) --no-print-directory test
	.ci/prove $(TARGET)/release/weft $(TARGET)/coverage
	$(TARGET)/release/weft coverage --from $(TARGET)/coverage --write suites/coverage/proofs.csv

guide: build ## Make the user's guide as HTML, with every requirement, case and fault (needs mdbook)
	docs/build $(TARGET)/release/weft

dist: setup ## Make the release files: static binary, Debian package, image, checksums, SBOM
	dist/build

deb: setup ## Make the Debian package alone, with manual pages and completions
	dist/build deb

lint: setup ## Check formatting, clippy and documentation, with warnings denied
	.ci/run fmt clippy docs

siw: build ## Test the Linux kernel's soft-iWARP in QEMU (root, Debian 12; minutes the first time)
	interop/siw/judge

fuzz: setup ## Run all fuzz targets for SECONDS in total (default 60)
	fuzz/run $(or $(SECONDS),60)

bench: build ## Compare with tshark on a generated capture
	WEFT=$(TARGET)/release/weft bench/dissect

ci: ## Run what a change must pass; .ci/run all adds the long checks
	.ci/run
