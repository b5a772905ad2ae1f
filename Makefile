# What CI and contributors run. `make test` is the whole check; everything else is on request.

DATA ?=
FUZZ_SECONDS ?= 300

# Of the same packages for every benchmark: with others, their dependencies' features differ and all is compiled anew.
BUILD = cargo build --release -p ngame-cli -p ngame-bench

# Further words for `ngame train`, where a benchmark trains: OPTIONS="--set encoder.trained_layers=2"
OPTIONS_FLAG = $(if $(OPTIONS),--options $(OPTIONS))

.PHONY: test lint doc fmt deny bench-data bench-encoder bench-clustering bench-index bench-sampling bench-classifier bench-accuracy bench-peers bench-subjects bench-paper bench-scale bench-search bench-predict bench-serve soak-serve fuzz

# The encoder tests compare with sentence-transformers on real weights, which are fetched once; the page is
# tried in a browser, which is installed where it is missing.
test: lint encoders/all-MiniLM-L6-v2/model.safetensors
	scripts/get-chromium
	cargo test --workspace
	$(MAKE) doc

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

fmt:
	cargo fmt --all

# Licences, bans and sources of all dependencies. Installing cargo-deny takes minutes, once.
deny:
	cargo deny --version || cargo install --locked cargo-deny
	cargo deny check licenses bans sources

# Reading and tokenising against Python, loading a data set of a million labels, scoring a million
# predictions: make bench-data DATA=/path/to/yso-finna-en
bench-data: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin read-and-tokenise --bin synthetic-lf --bin load --bin score-million
	python3 bench/data.py $(DATA)

# Training, embedding and answering against PyTorch, sentence-transformers and onnxruntime, which it
# installs into bench/.venv (gigabytes): make bench-encoder DATA=/path/to/debian-related [ROUNDS=3]
bench-encoder: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin encoder
	python3 bench/encoder.py $(DATA) $(if $(ROUNDS),--rounds $(ROUNDS))

# Clusters of a million vectors against the same algorithm in NumPy. VECTORS says where the vectors are kept.
bench-clustering:
	$(BUILD) --bin clustering
	python3 bench/clustering.py $(if $(VECTORS),--vectors $(VECTORS))

# Approximate search against hnswlib, faiss and usearch, which it installs into bench/.venv:
# make bench-index DATA=/path/to/msdocs-seealso SYNTHETIC=200000 (a million takes an hour)
bench-index: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin ngame --bin index
	python3 bench/index.py $(DATA) $(if $(SYNTHETIC),--synthetic $(SYNTHETIC))

# Cost and accuracy of the samplers: make bench-sampling DATA="/path/to/debian-related ..." (hours; goes on where
# it was stopped)
bench-sampling: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin ngame --bin retrieval --bin hard-negatives
	python3 bench/samplers.py $(DATA) $(if $(ENCODER),--encoder $(ENCODER)) $(if $(EPOCHS),--epochs $(EPOCHS)) $(OPTIONS_FLAG)

# Classifiers on frozen vectors against PyTorch, and over 1.3 million labels:
# make bench-classifier DATA=/path/to/debian-related ENCODER=/path/to/a/trained/encoder
bench-classifier:
	$(BUILD) --bin classifiers
	python3 bench/classifier.py $(DATA) --encoder $(ENCODER)

# One text and many to labels against sentence-transformers and hnswlib in Python:
# make bench-predict DATA=/path/to/msdocs-seealso
bench-predict: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin ngame --bin predict
	python3 bench/predict.py $(DATA)

# Accuracy beside omikuji and PECOS on the same texts: make bench-accuracy DATA="/path/to/debian-related ..."
# [TEXT=title] [SEEDS=3] [ENCODER=folder]; goes on where it was stopped.
bench-accuracy:
	$(BUILD) --bin ngame
	python3 bench/accuracy.py $(DATA) $(if $(TEXT),--text $(TEXT)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ENCODER),--encoder $(ENCODER)) $(OPTIONS_FLAG)

# The same beside every peer, ngame with both encoders (hours; goes on where it was stopped):
# make bench-peers DATA="/path/to/debian-related ..." [TEXT=title|both] [REUSE="bench/results/… ..."], rows of records
bench-peers: encoders/all-MiniLM-L6-v2/model.safetensors
	$(BUILD) --bin ngame
	python3 bench/accuracy.py $(DATA) $(if $(TEXT),--text $(TEXT)) --seeds 1 --encoder bag encoders/all-MiniLM-L6-v2 --peers all $(if $(REUSE),--reuse $(REUSE))

# Subject headings for library records beside what was published: make bench-subjects DATA=/path/to/tibkat-gnd-dev
# [ENCODER=folder]; goes on where it was stopped.
bench-subjects:
	$(BUILD) --bin ngame
	python3 bench/subjects.py $(DATA) $(if $(ENCODER),--encoder $(ENCODER)) $(OPTIONS_FLAG)

# The paper's experiments on your data, with their figures: make bench-paper DATA=/path/to/debian-related
# [EXPERIMENTS="ablation deciles curriculum joint views negatives parts theory"] [ENCODER=folder]; goes on where it was stopped.
bench-paper:
	$(BUILD) --bin ngame --bin hard-negatives --bin classifiers
	python3 bench/paper.py $(DATA) $(if $(EXPERIMENTS),--experiments $(EXPERIMENTS)) $(if $(ENCODER),--encoder $(ENCODER)) $(OPTIONS_FLAG)

# What each stage costs as data grows, and what the paper's data sets would: 20 minutes, with LARGE=1 40 minutes more,
# on 600,000 and 1.3 million labels; with DATA="/path/to/debian-related ..." also what the words of real texts cost; goes on where it
# was stopped.
bench-scale:
	$(BUILD) --bin ngame --bin lexical
	python3 bench/scale.py $(DATA) $(if $(LARGE),--large)

# Settings compared on held-out training points: make bench-search DATA="/path/to/debian-related ..."
# [TEXT=title] [ENCODER=bag] [STAGE=encoder|later|whole] [TRIALS="loss.temperature=0.03 ..."] [OPTIONS="--epochs 1"]; goes on where it was stopped.
bench-search:
	$(BUILD) --bin ngame
	python3 bench/search.py $(DATA) $(if $(TEXT),--text $(TEXT)) $(if $(ENCODER),--encoder $(ENCODER)) $(if $(STAGE),--stage $(STAGE)) $(if $(TRIALS),--trials $(TRIALS)) $(OPTIONS_FLAG)

# The server against FastAPI with sentence-transformers and hnswlib, which it installs into bench/.venv, on the
# vectors of a model with an encoder of the BERT family: make bench-serve MODEL=/path/to/a/model
bench-serve:
	$(BUILD) --bin ngame --bin http-load
	python3 bench/serve.py $(MODEL)

# The server at full load with reloads and wrong requests: make soak-serve MODEL=/path/to/a/model [SECONDS=600]
SECONDS ?= 600
soak-serve:
	$(BUILD) --bin ngame --bin http-load
	python3 bench/serve.py $(MODEL) --soak $(SECONDS)

encoders/all-MiniLM-L6-v2/model.safetensors:
	scripts/get-minilm

# Every fuzz target for FUZZ_SECONDS each; needs `cargo install --locked cargo-fuzz`, works on stable Rust.
fuzz:
	cd fuzz && for target in $$(cargo fuzz list); do \
		mkdir -p corpus/$$target; \
		cargo fuzz run --sanitizer none $$target corpus/$$target seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 || exit 1; \
	done
