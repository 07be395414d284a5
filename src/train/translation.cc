// Training a translator: parallel text, its vocabulary and its run directory.
#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/run.h"
#include "text/corpus.h"
#include "train/fit.h"
#include "train/session.h"
#include "train/translation_task.h"

namespace qkv {
namespace {

constexpr int64_t kVocabularySentences = 1'000'000;  // from which a vocabulary is trained, at most (approximately)

class TranslationData {
 public:
  static constexpr bool kCountsBatches = false;  // pairs are tokenized during training

  static void check(const TranslationRecipe& given, const TranslationFiles& files, int64_t memory);
  static TranslationRecipe saved_recipe(const RunDirectory& run);

  TranslationData(const TrainingSession& session, const TranslationRecipe& given, const TranslationFiles& files,
                  int64_t memory);

  void set_sizes(TranslationRecipe& recipe) const;
  void set_limits(TranslationRecipe& recipe);
  std::unique_ptr<Task> make_task(const TranslationRecipe& recipe);
  void create_run(const RunDirectory& run, const TranslationRecipe& recipe) const;

 private:
  TokenizerPair load_or_train_tokenizers(const TranslationFiles& files, const TextConfig& config) const;
  TokenizerPair train_tokenizers(const TranslationFiles& files, const TextConfig& config) const;
  void make_evaluator(const ModelConfig& model, int64_t batch_tokens);
  void report_vocabulary(const TextConfig& config) const;

  const TrainingSession& session_;
  const int64_t memory_;
  ParallelCorpus text_;
  ParallelText dev_;
  TokenizerPair tokenizers_;
  std::optional<Evaluator> evaluator_;
  std::optional<BatchStream> stream_;
};

void TranslationData::check(const TranslationRecipe& given, const TranslationFiles& files, int64_t) {
  qkv::check(given.text);
  for (const auto& [name, layers] : {std::pair{"encoder_layers", given.model.encoder_layers},
                                     std::pair{"decoder_layers", given.model.decoder_layers}})
    if (layers < 1) fail("recipe: {} must be at least 1 for a translator (is {})", name, layers);
  if (std::count(files.train.begin(), files.train.end(), "-") + std::count(files.dev.begin(), files.dev.end(), "-") > 1)
    fail("training: standard input (-) can be only one of the text files");
  if (given.text.joint_vocabulary && !files.target_tokenizer.empty())
    fail("training: target_tokenizer requires joint_vocabulary = false");
}

TranslationRecipe TranslationData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::translator);
  return {read_recipe(run), read_fields<TextConfig>(run, run.text())};
}

TranslationData::TranslationData(const TrainingSession& session, const TranslationRecipe& given,
                                 const TranslationFiles& files, int64_t memory)
    : session_(session),
      memory_(memory),
      text_(files.train, given.text.lowercase),
      dev_(read_parallel(files.dev, given.text.lowercase)),
      tokenizers_(load_or_train_tokenizers(files, given.text)) {}

TokenizerPair TranslationData::load_or_train_tokenizers(const TranslationFiles& files, const TextConfig& config) const {
  for (const auto& [paths, lines] : {std::pair{&files.train, text_.size()}, {&files.dev, dev_.size()}})
    if (lines == 0) fail("{}: contains no sentence pair", paths->front());
  return session_.resumed ? read_run<TranslatorRun>(session_.run).tokenizers : train_tokenizers(files, config);
}

// Trained from all lines or, if the text is long, from a sample.
TokenizerPair TranslationData::train_tokenizers(const TranslationFiles& files, const TextConfig& config) const {
  const TokenizerOptions options{config.tokenizer, config.vocab_size};
  const bool joint = config.joint_vocabulary;
  ParallelText sample;
  if (files.source_tokenizer.empty() || (!joint && files.target_tokenizer.empty())) {
    sample = text_.sample(joint ? kVocabularySentences / 2 : kVocabularySentences);
    if (sample.size() < text_.size())
      session_.report(fmt::format("vocabulary: trained from {} of the {} pairs", sample.size(), text_.size()));
  }
  const auto make = [&](const std::string& file, const std::vector<std::string>& lines) {
    return file.empty() ? Tokenizer::train(lines, options) : Tokenizer::load(file);
  };
  if (!joint) return {make(files.source_tokenizer, sample.source), make(files.target_tokenizer, sample.target)};
  std::move(sample.target.begin(), sample.target.end(), std::back_inserter(sample.source));
  const Tokenizer both = make(files.source_tokenizer, sample.source);
  return {both, both};
}

void TranslationData::report_vocabulary(const TextConfig& config) const {
  session_.report(fmt::format("vocabulary: {} pieces{}", tokenizers_.source.size(),
                              config.joint_vocabulary
                                  ? " for both languages"
                                  : fmt::format(" (source) and {} pieces (target)", tokenizers_.target.size())));
}

void TranslationData::set_sizes(TranslationRecipe& recipe) const {
  ModelConfig& model = recipe.model;
  model.source_vocab = tokenizers_.source.size();
  model.target_vocab = tokenizers_.target.size();
}

void TranslationData::set_limits(TranslationRecipe& recipe) {
  int64_t& batch_tokens = recipe.training.batch_tokens;
  if (memory_ > 0 && session_.resumed) batch_tokens = read_recipe(session_.run).training.batch_tokens;
  if (memory_ == 0 || session_.resumed) return make_evaluator(recipe.model, batch_tokens);

  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  make_evaluator(recipe.model, kMost);
  batch_tokens =
      fit_batch_tokens(recipe, std::max(recipe.model.max_length, evaluator_->longest()),
                       std::min(text_.size() * recipe.model.max_length, kMost), *evaluator_, to_size(memory_));
  evaluator_->set_batch_tokens(batch_tokens);
  session_.report(fmt::format("batch_tokens: {}, the largest that fits in {} MiB", batch_tokens, memory_ >> 20));
}

void TranslationData::make_evaluator(const ModelConfig& model, int64_t batch_tokens) {
  evaluator_.emplace(std::move(dev_), tokenizers_.source, tokenizers_.target, model.max_length, batch_tokens);
}

std::unique_ptr<Task> TranslationData::make_task(const TranslationRecipe& recipe) {
  report_vocabulary(recipe.text);
  const TrainingConfig& training = recipe.training;
  stream_.emplace(text_, tokenizers_.source, tokenizers_.target,
                  StreamOptions{recipe.model.max_length, training.batch_tokens, static_cast<uint64_t>(training.seed)});
  return std::make_unique<TranslationTask>(recipe, *stream_, *evaluator_);
}

void TranslationData::create_run(const RunDirectory& run, const TranslationRecipe& recipe) const {
  const TranslatorRun parts{recipe.model, tokenizers_, trained_translation(tokenizers_, recipe.text.lowercase)};
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.text(), recipe.text);
  });
}

}  // namespace

bool train_translation(const TranslationFiles& files, const TranslationRecipe& recipe, const std::string& out,
                       const TrainingObserver& observer, int64_t memory) {
  return train_on<TranslationData>(out, observer, recipe, files, memory);
}

}  // namespace qkv
