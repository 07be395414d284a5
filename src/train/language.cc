// Training a language model: plain text, its tokens and its run directory.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/loop/train_on_files.h"
#include "train/optimizer/trained_parts.h"
#include "train/plain_text.h"
#include "train/tasks/language_task.h"

namespace qkv {
namespace {

PlainText read_text(const std::vector<std::string>& files, const LanguageConfig& config) {
  const bool is_utf8 = config.unit != TextUnit::bytes;
  return PlainText(files, config.document_end, is_utf8 ? "; use unit = bytes for such a file" : nullptr);
}

TextCodec make_codec(const std::string& tokenizer, const LanguageConfig& config,
                     const std::vector<std::string_view>& train, const std::vector<std::string_view>& dev) {
  if (config.unit == TextUnit::bytes) return {};
  if (config.unit == TextUnit::pieces)
    return TextCodec::of_pieces(
        tokenizer.empty()
            ? train_pieces({.kind = config.tokenizer, .vocab_size = config.vocab_size, .exact = true}, train)
            : Tokenizer::load(tokenizer));
  std::vector<std::string_view> all = train;
  all.insert(all.end(), dev.begin(), dev.end());
  return TextCodec::of_characters(all);
}

class LanguageData {
 public:
  static constexpr bool kCountsBatches = true, kFitsLimits = true;

  static void check(const LanguageRecipe& given, const LanguageFiles& files);
  static LanguageRecipe saved_recipe(const RunDirectory& run);

  LanguageData(const TrainingSession& session, const LanguageRecipe& given, const LanguageFiles& files);

  void set_sizes(LanguageRecipe& recipe) const;
  void set_limits(LanguageRecipe& recipe) const;
  int64_t batches(const LanguageRecipe& recipe) const { return LanguageTask::batches(recipe, train_); }
  std::unique_ptr<Task> make_task(const LanguageRecipe& recipe) const;
  void create_run(const RunDirectory& run, const LanguageRecipe& recipe) const;

 private:
  void expect_same(const LanguageRun& run, const LanguageRecipe& given) const;

  const LanguageFiles& files_;
  TextCodec codec_;
  ChatFiles chat_;
  TextEnds ends_;
  TokenStream train_, dev_;
};

void LanguageData::check(const LanguageRecipe& given, const LanguageFiles& files) {
  qkv::check(given.language);
  if (files.text.empty()) fail("training: text must name at least one file");
  check_fine_tuning(given.training, files.init);
  const TextUnit unit = given.language.unit;
  if (!files.tokenizer.empty() && unit != TextUnit::pieces)
    fail("training: a tokenizer requires unit = pieces (unit is {})", name_of(unit));
  if (!files.tokenizer.empty() && !files.init.empty())
    fail("training: tokenizer must be empty with init, whose tokenizer is kept");
  if (has_tokenizer_json(unit) && files.init.empty())
    fail("training: unit {} is only for imported models; must be characters, bytes or pieces", name_of(unit));
}

LanguageRecipe LanguageData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::language_model);
  return {read_recipe(run), read_fields<LanguageConfig>(run, run.language())};
}

LanguageData::LanguageData(const TrainingSession& session, const LanguageRecipe& given, const LanguageFiles& files)
    : files_(files) {
  const LanguageConfig& config = given.language;
  const bool has_dev = !files.dev.empty();
  PlainText text = read_text(files.text, config);
  const PlainText dev_text = read_text(files.dev, config);
  const std::vector<std::string_view> all = text.documents;
  const std::vector<std::string_view> dev = has_dev ? dev_text.documents : take_end(text.documents, config.dev_share);
  if (text.documents.empty() || dev.empty())
    fail("{}: is too short to set aside {} of it (dev_share)", files.text.front(), config.dev_share);
  if (session.resumed || !files.init.empty()) {
    if (session.resumed) expect_started_from(session.run, files.init);
    LanguageRun run = read_run<LanguageRun>(session.resumed ? session.run : RunDirectory(files.init));
    if (!session.resumed) expect_same(run, given);
    codec_ = std::move(run.codec);
    chat_ = std::move(run.chat);
    ends_ = run.ends;
    if (!session.resumed) session.report(starting_report(files.init, given.training));
  } else {
    codec_ = make_codec(files.tokenizer, config, text.documents, dev);
    ends_ = ends_of(config, codec_, "training");
  }
  const DocumentEnds ends{ends_.start, ends_.ends.front()};
  train_ = stream_of(text.documents, codec_, files.text.front(), ends);
  train_.files = files.text;
  train_.places = places_of(text);
  dev_ = stream_of(dev, codec_, has_dev ? files.dev.front() : files.text.front(), ends);
  if (!session.resumed && !files.init.empty()) {
    const RunDirectory init(files.init);
    const auto fingerprint = [&](const std::vector<std::string_view>& documents) {
      return fingerprint_of(stream_of(documents, codec_, files.text.front(), ends));
    };
    expect_untrained_dev(
        files.init, fingerprint_of(dev_),
        {files.dev, all, config.dev_share, read_fields<LanguageConfig>(init, init.language()).dev_share, fingerprint});
  }
  session.report(fmt::format("text: {} bytes for training, {} bytes for evaluation, {} distinct tokens", train_.bytes,
                             dev_.bytes, codec_.size()));
}

void LanguageData::expect_same(const LanguageRun& run, const LanguageRecipe& given) const {
  expect_same_shape(files_.init, run.config, given.model);
  expect_same_options(files_.init, run.language, given.language, {"document_end", "dev_share", "sample_tokens"});
  if (run.language.start != given.language.start || run.language.ends != given.language.ends)
    fail("{}: start and ends of the language configuration must be those of the run", files_.init);
}

void LanguageData::set_sizes(LanguageRecipe& recipe) const {
  ModelConfig& model = recipe.model;
  model.source_vocab = model.encoder_layers = 0;
  model.shared_embeddings = false;
  model.target_vocab = codec_.size();
}

void LanguageData::set_limits(LanguageRecipe& recipe) const { set_cosine_end(recipe.training, batches(recipe)); }

std::unique_ptr<Task> LanguageData::make_task(const LanguageRecipe& recipe) const {
  return std::make_unique<LanguageTask>(recipe, codec_, ends_, train_, dev_);
}

void LanguageData::create_run(const RunDirectory& run, const LanguageRecipe& recipe) const {
  qkv::create_run(run, LanguageRun{recipe.model, recipe.language, codec_, chat_}, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_initial<LanguageRun>(files_.init, recipe, partial);
  });
}

}  // namespace

LanguageRecipe language_fine_tuning(const std::string& run) {
  const LanguageRun parts = read_run<LanguageRun>(RunDirectory(run));
  LanguageRecipe recipe;
  recipe.model = parts.config;
  recipe.language = parts.language;
  set_text_fine_tuning(recipe.training);
  return recipe;
}

bool train_language_model(const LanguageFiles& files, const LanguageRecipe& recipe, const std::string& out,
                          const TrainingObserver& observer, const RankOptions& ranks) {
  return train_on_text<LanguageData>(files, recipe, out, observer, ranks);
}

}  // namespace qkv
