// Hard negatives: texts that an embedder finds similar to an anchor although they do not belong to it. Rows of pairs
// become rows with negatives, which qkv::train_embedder reads. Moreira et al., "NV-Retriever: Improving text embedding
// models with effective hard-negative mining" (2024). docs/train-embedders.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qkv/embedder.h"
#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

struct HardNegativeOptions {
  int64_t negatives_per_row = 3;
  double relative_margin = 0.05;
  int64_t skip_nearest = 0;
  int64_t sample_from = 0;
  uint64_t seed = 1;
};

template <class Visitor>
void visit_fields(HardNegativeOptions& o, Visitor&& visit) {
  constexpr int64_t kMost = 10'000;
  visit("negatives_per_row", o.negatives_per_row,
        {"Negatives that a row gets; rows with fewer are dropped and counted", "hard negatives", between(1, 100)});
  visit("relative_margin", o.relative_margin,
        {"Least difference of the similarities of the positive and a negative to the anchor, as a share of the former; "
         "with 0, a negative may be as similar as the positive, with values below 0 more similar",
         "hard negatives", between(-10, 1)});
  visit("skip_nearest", o.skip_nearest,
        {"Number of the most similar texts within the margin that are skipped, because they may belong to the anchor, "
         "too",
         "hard negatives", between(0, kMost)});
  visit("sample_from", o.sample_from,
        {"Draw the negatives of a row at random from this many of the most similar texts; 0 takes the most similar "
         "ones",
         "hard negatives", between(0, kMost)});
  visit("seed", o.seed, {"Seed of the random choice", "hard negatives"});
}

// Throws Error, naming the option, for a value outside its range and for values that contradict each other.
void check(const HardNegativeOptions& options);

struct HardNegativeFiles {
  // Rows of an anchor, a positive and perhaps negatives, as of qkv::EmbedderFiles.
  std::string rows = {};
  std::vector<std::string> columns = {};  // names or numbers, from 1; empty: usual names, or all columns
  // File to write: the rows with negatives, in the order of the file. Its name ends in .csv, .tsv, or .jsonl, .json or
  // .ndjson for JSON lines.
  std::string out = {};
};

enum class HardNegativeStep { embed, search };

struct HardNegativeObserver {
  // Called with a line about the data or the result.
  std::function<void(const std::string&)> on_message = [](const std::string&) {};
  // Called with the number of texts embedded, or of rows searched, since the last call. May throw to stop; no file is
  // written then.
  std::function<void(HardNegativeStep, int64_t)> on_progress = [](HardNegativeStep, int64_t) {};
};

struct HardNegativeReport {
  int64_t rows = 0;        // of the file
  int64_t written = 0;     // rows with negatives; the others were dropped
  int64_t texts = 0;       // different anchors and positives, each of which was embedded once
  int64_t candidates = 0;  // different positives
  int64_t cut = 0;         // texts that were truncated
  // Means over the rows written: the similarity of the anchor and its positive, and of the anchor and a negative found.
  double positive_similarity = 0, negative_similarity = 0;
};

// Finds negatives for each row of a file, and writes the rows with them. The candidates are the positives of all rows,
// without the anchor itself and without texts that any row pairs with it, in either order; texts are equal if their
// bytes are. A row gets the most similar candidates that are less similar to its anchor than its positive by the
// margin. Negatives that a row has already stay before them, and are not found again.
//
// The similarity is the cosine of two vectors, or with normalize = false in embed_options their product. Equal
// similarities are ordered by the first row with the text. The bytes written do not depend on the number of threads. In
// memory are the texts of the file and the vectors of the different ones; similarities are computed in blocks.
//
// Throws Error, naming the option, or the file and the line: for options out of range; for what ExampleFile refuses;
// for rows without a positive or with a score; for an empty text and one that the embedder refuses; for a text that the
// format of the output cannot hold; and if no row has enough negatives.
HardNegativeReport mine_hard_negatives(const Embedder& embedder, const HardNegativeFiles& files,
                                       const HardNegativeOptions& options = {}, const EmbedOptions& embed_options = {},
                                       const HardNegativeObserver& observer = {});

}  // namespace qkv
