# Shortcuts. Cargo alone does for those who prefer it: cargo build --release, cargo test --workspace.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help setup build demo test coverage guide deb lint siw ci

help: ## This list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## Look for a C compiler and Rust; install build-essential and libpcap-dev where they are missing and may be installed
	@.ci/setup

build: setup ## Build the release binary
	$(CARGO) build --release --bin weft

demo: build ## Dissect a real capture, judge a correct and a deviating responder, write the report
	$(TARGET)/release/weft demo

test: setup ## Run all tests (with cargo-nextest where it is installed)
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo '$(CARGO) nextest run --workspace && $(CARGO) test --workspace --doc'; \
		$(CARGO) nextest run --workspace && $(CARGO) test --workspace --doc; \
	else \
		echo '$(CARGO) test --workspace'; \
		$(CARGO) test --workspace; \
	fi

coverage: setup ## Run the tests and the kill matrix, count which requirements they prove, renew the table in suites/coverage
	rm -rf $(TARGET)/coverage && mkdir -p $(TARGET)/coverage
	WEFT_COVERAGE=$(abspath $(TARGET))/coverage $(MAKE) --no-print-directory test
	.ci/prove $(TARGET)/debug/weft $(TARGET)/coverage
	$(TARGET)/debug/weft coverage --from $(TARGET)/coverage --write suites/coverage/proofs.csv

guide: build ## The user's guide as HTML, with every requirement, case and deviation (needs mdbook)
	docs/build $(TARGET)/release/weft

deb: setup ## The Debian package, with manual pages and completions (needs cargo-deb)
	.ci/package

lint: setup ## Formatting, clippy and documentation, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps

siw: build ## Run the suites against the Linux kernel's soft-iWARP in QEMU (root, Debian 12; minutes the first time)
	interop/siw/judge

fuzz: setup ## Run all fuzz targets, SECONDS in all (default 60)
	fuzz/run $(or $(SECONDS),60)

bench: build ## Compare with tshark on a generated capture
	WEFT=$(TARGET)/release/weft bench/dissect

ci: ## Everything that must hold before a change goes in
	.ci/run
