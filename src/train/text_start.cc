#include "train/text_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "core/fail.h"
#include "core/fields.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/examples/shuffled_rows.h"
#include "io/runs/run.h"
#include "io/runs/text_head_file.h"
#include "io/weights/weights.h"
#include "train/initial_run.h"
#include "train/optimizer/trained_parts.h"

namespace qkv {
namespace {

constexpr const char* kBeforeDev = ", dev ";  // of a fingerprint, between the rows for training and for evaluation

// Returns a model without the layers that predict tokens.
ModelConfig without_output(ModelConfig model) {
  if (model.is_encoder_only()) {
    model.token_head = TokenHead::none;
    model.tied_output = model.output_bias = false;
  } else if (model.embedding_width == 0) {
    model.tied_output = true;
    model.output_bias = false;
    model.output_softcap = 0;
  }
  return model;
}

// Texts are read as an embedder reads them for a language model (decode/encoder/text_encoder.cc).
EncoderRun encoder_of(LanguageRun language) {
  EncoderRun run;
  run.config = language.config;
  run.codec = std::move(language.codec);
  run.embedding.unit = run.codec.unit();
  run.embedding.pooling = Pooling::last;
  const bool has_spellings = run.codec.unit() != TextUnit::bytes && run.codec.unit() != TextUnit::characters;
  if (language.ends.starts_prompts && has_spellings) run.embedding.start = run.codec.piece(language.ends.start);
  run.edges = edges_of(run.embedding, run.codec, "training");
  return run;
}

TextStart start_of(EncoderRun run) { return {RunKind::encoder, std::move(run)}; }
TextStart start_of(LanguageRun run) { return {RunKind::language_model, encoder_of(std::move(run))}; }
TextStart start_of(ClassifierRun run) {
  TextStart start{RunKind::classifier};
  start.classification = run.classification;
  start.run = std::move(run);
  return start;
}

template <class... Runs>
TextStart read_one_of(const RunDirectory& directory) {
  const RunConfig config = read_config(directory);
  expect_kind(directory, config.kind, {Runs::kKind...});
  TextStart start;
  const auto read = [&]<class Run>(std::in_place_type_t<Run>) {
    if (config.kind == Run::kKind) start = start_of(read_parts<Run>(directory, config));
  };
  (read(std::in_place_type<Runs>), ...);
  return start;
}

using Weights = std::map<std::string, const Parameter<float>*>;

void add_weights(const ParameterList<float>& list, Weights& weights) {
  for (const Parameter<float>& p : list.all()) weights.emplace(p.name, &p);
}

// Adds the weights of the layers after the hidden states.
void add_head(const EncoderRun& run, Weights& weights) {
  if (run.dense) add_weights(run.dense->parameters(), weights);
}
void add_head(const ClassifierRun& run, Weights& weights) { add_weights(run.head->parameters(), weights); }
void add_head(const LanguageRun&, Weights&) {}

}  // namespace

TextStart read_text_start(const std::string& directory) {
  TextStart start = read_one_of<EncoderRun, ClassifierRun, LanguageRun>(RunDirectory(directory));
  start.run.config = without_output(start.run.config);
  return start;
}

int64_t text_length(const EncoderRun& run, int64_t given, int64_t least) {
  const int64_t longest = run.config.max_length;
  const int64_t of_run = run.embedding.max_length > 0 ? run.embedding.max_length : longest;
  const int64_t length = given > 0 ? given : of_run;
  if (length < least || length > longest)
    fail("training: max_length must be between {} and {}, the model's (is {})", least, longest, length);
  return length;
}

std::unique_ptr<Transformer<float>> start_model(const std::string& init, const Recipe& recipe, bool takes_head) {
  TextHeadConfig head = recipe.head;
  head.apart = false;
  auto start = std::make_unique<Transformer<float>>(recipe.model, recipe.items, head);
  start->parameters().initialize(static_cast<uint64_t>(recipe.training.seed), recipe.training.initial_deviation);
  const auto copy = [&](const auto& run) {
    expect_float32(RunDirectory(init), *run.model);
    Weights weights;
    add_weights(run.model->parameters(), weights);
    if (takes_head) add_head(run, weights);
    for (const Parameter<float>& p : start->parameters().all())
      if (const auto from = weights.find(p.name); from != weights.end() && from->second->shape == p.shape)
        std::copy_n(from->second->value, p.size(), p.value);
  };
  std::visit(copy, load_one_of<EncoderRun, ClassifierRun, LanguageRun>(init));
  return start;
}

void write_text_start(const std::string& init, const Recipe& recipe, const Transformer<float>& start,
                      const RunDirectory& to) {
  const auto [list, begin, end] = start.head_parameters();
  const bool is_adapter = recipe.training.lora_rank > 0;
  if (is_adapter) write_adapter(to, make_adapter(recipe, init));
  if (!is_adapter || begin < end) save_weights(to.start(), list, list.values(), is_adapter ? begin : 0, end);
  write_text_head(to, start);
}

void set_row_fine_tuning(TrainingConfig& training) {
  set_text_fine_tuning(training);
  training.learning_rate = 2e-5;
  training.schedule = Schedule::cosine;
  training.beta2 = 0.999;
  training.epsilon = 1e-8;
  training.weight_decay = 0.01;
  training.clip_norm = 1;
  training.patience = 0;
  training.selection = Selection::metric;
}

void set_row_warmup(TrainingConfig& training) {
  constexpr double kShare = 0.1;  // of the steps
  if (training.max_steps <= 0) return;
  training.warmup_steps = std::max<int64_t>(1, std::llround(kShare * static_cast<double>(training.max_steps)));
}

std::vector<int64_t> chosen_for_dev(const std::string& path, int64_t all, double share, const std::set<int64_t>& kept) {
  const auto wanted = std::clamp<int64_t>(std::llround(share * static_cast<double>(all)), 1, kMostDevRows);
  std::vector<int64_t> chosen;
  for (const int64_t number : shuffled_rows(all, 0, 0)) {
    if (std::ssize(chosen) == wanted) break;
    if (!kept.contains(number)) chosen.push_back(number);
  }
  if (chosen.empty() || std::ssize(chosen) == all)
    fail("{}: is too short to set aside {} of it (dev_share); set dev to a file of rows for evaluation", path, share);
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<int64_t> numbers_without(int64_t all, const std::vector<int64_t>& chosen) {
  std::vector<int64_t> rest;
  rest.reserve(to_size(all - std::ssize(chosen)));
  auto next = chosen.begin();
  for (int64_t number = 0; number < all; number++) {
    if (next != chosen.end() && *next == number)
      ++next;
    else
      rest.push_back(number);
  }
  return rest;
}

std::string rows_fingerprint(const ExampleFile& file, const std::vector<int64_t>& rows) {
  const std::string_view bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(int64_t));
  return fmt::format("{} {:016x}", file.fingerprint(), hash_bytes(bytes));
}

std::string rows_fingerprint(const std::string& train, const std::string& dev) { return train + kBeforeDev + dev; }

void expect_untrained_rows(const std::string& init, const DevPart& rows) {
  const std::string saved = trained_text(init), trained = saved.substr(0, saved.find(kBeforeDev));
  if (trained.empty()) return;
  if (!rows.file.empty()) {
    if (trained == rows.fingerprint)
      fail("{}: was trained on {}, so that scores on it would be too good; use another dev file", init, rows.file);
    return;
  }
  const bool was_more = rows.share_before < rows.share;
  if (trained == rows.trained_without(0) || (was_more && trained == rows.trained_without(rows.share_before)))
    fail(
        "{}: was trained on rows of {} that are set aside here (dev_share {}), so that scores would be too good; use "
        "its dev_share or a dev file",
        init, rows.train, rows.share);
}

std::string describe_columns(const ExampleFile& file) {
  const auto list_of = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + excerpt(name);
    return text;
  };
  std::string line = file.names().empty() ? fmt::format("{}: columns {} (no header)", file.path(),
                                                        fmt::join(file.column_numbers(), ", "))
                                          : fmt::format("{}: columns {}", file.path(), list_of(file.names()));
  if (!file.unused().empty()) line += fmt::format("; not used: {} (choose with columns)", list_of(file.unused()));
  return line;
}

void check_columns(const std::vector<std::string>& columns, std::string_view option) {
  for (auto column = columns.begin(); column != columns.end(); ++column)
    if (std::find(columns.begin(), column, *column) != column)
      fail("{} must be different columns (names {} twice)", option, excerpt(*column));
}

void append_text(const ModelConfig& model, std::span<const int32_t> ids, std::span<const int32_t> types, Batch& batch) {
  Packed& side = model.has_encoder() ? batch.source : batch.target;
  side.append(ids);
  if (model.token_types > 1) side.types.insert(side.types.end(), types.begin(), types.end());
}

}  // namespace qkv
