// Training a translator: parallel text, its vocabulary and its run directory.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/runs/translation_config.h"
#include "text/parallel_corpus.h"
#include "text/stand_in_characters.h"
#include "train/initial_run.h"
#include "train/largest_batch.h"
#include "train/loop/session.h"
#include "train/optimizer/trained_parts.h"
#include "train/pair_lengths.h"
#include "train/pair_rewriter.h"
#include "train/source_sentences.h"
#include "train/tasks/translation_task.h"

namespace qkv {
namespace {

// Returns the text configuration of a run. An imported run has none, and its tokenizers were trained elsewhere.
TextConfig text_config_of(const RunDirectory& run, const TranslatorRun& parts) {
  if (std::filesystem::exists(run.text())) return read_fields<TextConfig>(run, run.text());
  TextConfig config;
  config.vocab_size = std::max<int64_t>(4, parts.config.target_vocab);
  config.joint_vocabulary = parts.config.shared_embeddings;
  config.lowercase = parts.translation.lowercase;
  return config;
}

SentenceEdges edges_between(const TranslatorRun& run, const std::string& from, const std::string& to) {
  if (run.tokens.target_language == TargetLanguage::none) refuse_tagged_language(run.tokenizers.source, to);
  return edges_of(run.tokens, from, to);
}

constexpr int64_t kVocabularySentences = 1'000'000;  // from which a vocabulary is trained, at most (approximately)

// Returns the number of pairs that are sampled from a long text.
int64_t sampled_pairs(const TextConfig& config) {
  return config.joint_vocabulary ? kVocabularySentences / 2 : kVocabularySentences;
}

class TranslationData {
 public:
  static constexpr bool kCountsBatches = false;  // pairs are tokenized during training
  static constexpr bool kFitsLimits = true;

  static void check(const TranslationRecipe& given, const TranslationFiles& files, int64_t memory);
  static TranslationRecipe saved_recipe(const RunDirectory& run);

  TranslationData(const TrainingSession& session, const TranslationRecipe& given, const TranslationFiles& files,
                  int64_t memory);

  void set_sizes(TranslationRecipe& recipe) const;
  void set_limits(TranslationRecipe& recipe);
  std::unique_ptr<Task> make_task(const TranslationRecipe& recipe);
  void create_run(const RunDirectory& run, const TranslationRecipe& recipe) const;

 private:
  TranslatorRun load_or_train_text(const TranslationFiles& files, const TextConfig& config) const;
  TokenizerPair train_tokenizers(const TranslationFiles& files, const TextConfig& config) const;
  void start_from_init(const TranslationRecipe& given) const;
  void learn_sentences(const TextConfig& config);
  std::optional<SentenceLengths> sentence_lengths(int64_t max_length) const;
  std::function<void(ParallelText&, int64_t)> rewriting(uint64_t seed) const;
  void make_evaluator(const ModelConfig& model, int64_t batch_tokens);
  void report_vocabulary(const TextConfig& config) const;

  const TrainingSession& session_;
  const TranslationFiles& files_;
  const int64_t memory_;
  ParallelCorpus text_;
  ParallelText dev_;
  TranslatorRun run_;  // all but the model, which is set when the run is created
  DecodingDefaults decoding_;
  SentenceEdges edges_;
  std::optional<Evaluator> evaluator_;
  std::optional<BatchStream> stream_;
};

void TranslationData::check(const TranslationRecipe& given, const TranslationFiles& files, int64_t memory) {
  qkv::check(given.text);
  check_fine_tuning(given.training, files.init);
  if (given.training.lora_rank > 0 && memory > 0) fail("training: memory requires lora_rank = 0");
  if (given.training.device == ComputeDevice::cuda && memory > 0) fail("training: memory requires device = cpu");
  for (const auto& [name, layers] : {std::pair{"encoder_layers", given.model.encoder_layers},
                                     std::pair{"decoder_layers", given.model.decoder_layers}})
    if (layers < 1) fail("recipe: {} must be at least 1 for a translator (is {})", name, layers);
  if (std::count(files.train.begin(), files.train.end(), "-") + std::count(files.dev.begin(), files.dev.end(), "-") > 1)
    fail("training: standard input (-) can be only one of the text files");
  if (!files.init.empty() && !(files.source_tokenizer + files.target_tokenizer).empty())
    fail("training: source_tokenizer and target_tokenizer must be empty with init, whose tokenizers are kept");
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
      files_(files),
      memory_(memory),
      text_(files.train, given.text.lowercase),
      dev_(read_parallel(files.dev, given.text.lowercase)),
      run_(load_or_train_text(files, given.text)),
      edges_(edges_between(run_, given.text.source_language, given.text.target_language)) {
  if (session.resumed) {
    expect_started_from(session.run, files.init);
  } else {
    if (!files.init.empty()) start_from_init(given);
    learn_sentences(given.text);
  }
}

// Checks that the run `init` can be trained further as this recipe says.
void TranslationData::start_from_init(const TranslationRecipe& given) const {
  expect_same_shape(files_.init, run_.config, given.model);
  expect_same_options(files_.init, text_config_of(RunDirectory(files_.init), run_), given.text,
                      {"source_language", "target_language"});
  const bool reads_input = std::ranges::find(files_.dev, "-") != files_.dev.end();
  if (const std::string trained = trained_text(files_.init); !trained.empty() && !reads_input)
    if (ParallelCorpus(files_.dev, given.text.lowercase).fingerprint() == trained)
      fail("{}: was trained on {}, so that scores on it would be too high; use another dev text", files_.init,
           fmt::join(files_.dev, " and "));
  session_.report(starting_report(files_.init, given.training));
}

// Fine-tuning keeps the abbreviations of the initial run. Its new text decides whether lines are sentences.
void TranslationData::learn_sentences(const TextConfig& config) {
  SourceSentences found = find_sentences(text_, sampled_pairs(config), run_.abbreviations);
  run_.abbreviations = std::move(found.abbreviations);
  if (!found.are_texts()) return;
  decoding_.sentences = Sentences::line;
  session_.report(
      fmt::format("sentences: {} of {} source lines have several, so the run translates each line as a whole "
                  "(sentences = line)",
                  found.several, found.lines));
}

TranslatorRun TranslationData::load_or_train_text(const TranslationFiles& files, const TextConfig& config) const {
  for (const auto& [paths, lines] : {std::pair{&files.train, text_.size()}, {&files.dev, dev_.size()}})
    if (lines == 0) fail("{}: contains no sentence pair", paths->front());
  if (session_.resumed) return read_run<TranslatorRun>(session_.run);
  if (!files.init.empty()) return read_run<TranslatorRun>(RunDirectory(files.init));
  const TokenizerPair tokenizers = train_tokenizers(files, config);
  TranslationConfig translation = trained_translation(tokenizers, config.lowercase);
  if (config.placeholders) add_stand_ins(translation);
  if (config.inline_terms) add_term_marks(translation, tokenizers.target);
  return {{}, tokenizers, translation, tokens_of(translation, tokenizers, "training")};
}

// Trained from all lines or, if the text is long, from a sample.
TokenizerPair TranslationData::train_tokenizers(const TranslationFiles& files, const TextConfig& config) const {
  TokenizerOptions options{config.tokenizer, config.vocab_size};
  if (config.placeholders) options.reserved.assign(kStandIns.begin(), kStandIns.end());
  if (config.inline_terms) options.reserved.insert(options.reserved.end(), kTermMarks.begin(), kTermMarks.end());
  const bool joint = config.joint_vocabulary;
  ParallelText sample;
  if (files.source_tokenizer.empty() || (!joint && files.target_tokenizer.empty())) {
    sample = text_.sample(sampled_pairs(config));
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
  session_.report(fmt::format("vocabulary: {} pieces{}", run_.tokenizers.source.size(),
                              config.joint_vocabulary
                                  ? " for both languages"
                                  : fmt::format(" (source) and {} pieces (target)", run_.tokenizers.target.size())));
}

void TranslationData::set_sizes(TranslationRecipe& recipe) const {
  ModelConfig& model = recipe.model;
  model.source_vocab = run_.tokenizers.source.size();
  model.target_vocab = run_.tokenizers.target.size();
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
  evaluator_.emplace(fmt::format("{}", fmt::join(files_.dev, " and ")), std::move(dev_), run_.tokenizers, run_.tokens,
                     edges_, model.max_length, batch_tokens);
}

std::unique_ptr<Task> TranslationData::make_task(const TranslationRecipe& recipe) {
  report_vocabulary(recipe.text);
  const TrainingConfig& training = recipe.training;
  const auto seed = static_cast<uint64_t>(training.seed);
  stream_.emplace(text_, run_.tokenizers.source, run_.tokenizers.target,
                  StreamOptions{.max_length = recipe.model.max_length,
                                .batch_tokens = training.batch_tokens,
                                .seed = seed,
                                .tokens = pair_tokens(run_.tokens, edges_),
                                .rewrite = rewriting(seed)});
  return std::make_unique<TranslationTask>(recipe, *stream_, *evaluator_);
}

// Returns what the run's stand-ins and term marks require.
std::function<void(ParallelText&, int64_t)> TranslationData::rewriting(uint64_t seed) const {
  if (run_.tokens.reserved.empty()) return nullptr;
  const auto rewriter = std::make_shared<const PairRewriter>(run_.tokens, WordPairs(text_), seed);
  return [rewriter](ParallelText& text, int64_t first) { rewriter->rewrite(text, first); };
}

std::optional<SentenceLengths> TranslationData::sentence_lengths(int64_t max_length) const {
  const std::optional<SentenceLengths> lengths = measure_lengths(text_, run_.tokenizers, max_length);
  return files_.init.empty() ? lengths : with_earlier(lengths, run_.lengths, max_length);
}

void TranslationData::create_run(const RunDirectory& run, const TranslationRecipe& recipe) const {
  TranslatorRun parts{recipe.model, run_.tokenizers, run_.translation, {}, run_.abbreviations};
  if (decoding_.sentences != Sentences::line) parts.lengths = sentence_lengths(recipe.model.max_length);
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.text(), recipe.text);
    write_decoding_defaults(partial, decoding_);
    write_initial<TranslatorRun>(files_.init, recipe, partial);
  });
}

}  // namespace

TranslationRecipe translation_fine_tuning(const std::string& run) {
  const RunDirectory directory(run);
  const TranslatorRun parts = read_run<TranslatorRun>(directory);
  TranslationRecipe recipe;
  recipe.model = parts.config;
  recipe.text = text_config_of(directory, parts);
  set_fine_tuning(recipe.training);
  return recipe;
}

bool train_translator(const TranslationFiles& files, const TranslationRecipe& recipe, const std::string& out,
                      const TrainingObserver& observer, int64_t memory, const RankOptions& ranks) {
  std::vector<std::string> texts = files.train;
  texts.insert(texts.end(), files.dev.begin(), files.dev.end());
  return train_on_ranks(ranks, out, observer, texts,
                        [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
                          return train_on<TranslationData>(run, own, all, recipe, files, memory);
                        });
}

}  // namespace qkv
