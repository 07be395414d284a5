// The run from which the training of an embedder or a classifier starts, as the parts of an encoder: an encoder, a
// classifier or a language model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "data/examples/example_file.h"
#include "io/runs/run_kinds.h"
#include "model/transformer.h"
#include "qkv/training.h"

namespace qkv {

struct TextStart {
  RunKind kind = RunKind::encoder;
  // Without weights. The model has no output layer. A language model pools the last token; its start token is put
  // before a text unless the vocabulary has no spelling of it, as for characters and bytes.
  EncoderRun run = {};
  std::optional<ClassificationConfig> classification = {};  // of a classifier
};

// Reads a run. Nothing in the directory is trusted. Throws Error, naming the file, or the kind of a run of another
// kind.
TextStart read_text_start(const std::string& directory);

// Returns the most tokens of a text: `given`, if that is not 0, else that of the run, or the model's. Throws Error
// unless it is between `least` and the model's max_length.
int64_t text_length(const EncoderRun& run, int64_t given, int64_t least);

// Returns a model of the recipe with the weights of the run `init`, by name. Parameters that the run lacks, or has in
// another shape, get initial values; `takes_head`: those of the head are also taken from the run. Throws Error, naming
// the run, if its weights are quantized.
std::unique_ptr<Transformer<float>> start_model(const std::string& init, const Recipe& recipe, bool takes_head);

// Writes what a new run trains from: the weights of `start`, or, with an adapter, those of its head and a reference to
// the run `init`; and the file of the head.
void write_text_start(const std::string& init, const Recipe& recipe, const Transformer<float>& start,
                      const RunDirectory& to);

// Sets the training values that suit rows of texts, but for the number of epochs and of steps between evaluations.
void set_row_fine_tuning(TrainingConfig& training);
// Sets warmup_steps to a tenth of max_steps, at least 1. Does nothing without max_steps.
void set_row_warmup(TrainingConfig& training);

inline constexpr int64_t kMostDevRows = 10'000;  // that are set aside for evaluation

// Returns the numbers, from 0 to `all` − 1 and ascending, of rows or lists that are set aside for evaluation: a share
// of them, at least 1 and at most kMostDevRows, the same in every run with this share, and more for a larger one. Those
// of `kept` are for training. Throws Error, naming `path`, if none can be set aside or none is left.
std::vector<int64_t> chosen_for_dev(const std::string& path, int64_t all, double share,
                                    const std::set<int64_t>& kept = {});
// Returns the numbers from 0 to `all` − 1 that are not in `chosen`, which is ascending.
std::vector<int64_t> numbers_without(int64_t all, const std::vector<int64_t>& chosen);
// Returns the fingerprint of these rows, or lists of rows, of a file.
std::string rows_fingerprint(const ExampleFile& file, const std::vector<int64_t>& rows);
// Returns the fingerprint of rows for training and rows for evaluation, which saved states have.
std::string rows_fingerprint(const std::string& train, const std::string& dev);

// The rows for evaluation: those of a file, or a part of the training rows that is set aside.
struct DevPart {
  std::string file = {}, train = {};   // paths; the first is "" if rows of the second are set aside
  std::string fingerprint = {};        // of the rows
  double share = 0, share_before = 0;  // set aside here, and by the initial run
  // Returns the fingerprint of all rows of `train` but a share that is set aside, or of all for 0.
  std::function<std::string(double share)> trained_without = {};
};
// Throws Error if the initial run was trained on rows for evaluation. Other files than that of its training cannot be
// compared.
void expect_untrained_rows(const std::string& init, const DevPart& rows);

// Describes the columns in use in one line: "rows.csv: columns "text1", "text2" of the header; not used: "id" (choose
// with columns)".
std::string describe_columns(const ExampleFile& file);
// Throws Error if a column is chosen twice. option: columns or dev_columns.
void check_columns(const std::vector<std::string>& columns, std::string_view option);

// Appends a text to a batch: to the source of an encoder, otherwise to the target. types: of the tokens; may be empty.
void append_text(const ModelConfig& model, std::span<const int32_t> ids, std::span<const int32_t> types, Batch& batch);

}  // namespace qkv
