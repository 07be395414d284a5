// qkv::train_translation: from text files to a trained run directory.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "text/corpus.h"
#include "train/fit.h"
#include "train/resume.h"
#include "train/trainer.h"
#include "train/translation_task.h"

namespace qkv {
namespace {

constexpr int64_t kMostSentences = 1'000'000;  // that a vocabulary is learned from, about

// Learned from all lines or, of a long text, from a sample that `say` reports.
TokenizerPair make_tokenizers(const TranslationFiles& files, const TextConfig& config, const ParallelCorpus& text,
                              const std::function<void(const std::string&)>& say) {
  const TokenizerOptions options{config.tokenizer, config.vocab_size};
  const bool joint = config.joint_vocabulary;
  ParallelText sample;
  if (files.source_tokenizer.empty() || (!joint && files.target_tokenizer.empty())) {
    sample = text.sample(joint ? kMostSentences / 2 : kMostSentences);
    if (sample.size() < text.size())
      say(fmt::format("vocabulary: learned from {} of the {} pairs", sample.size(), text.size()));
  }
  const auto make = [&](const std::string& file, const std::vector<std::string>& lines) {
    return file.empty() ? Tokenizer::train(lines, options) : Tokenizer::load(file);
  };
  if (!joint) return {make(files.source_tokenizer, sample.source), make(files.target_tokenizer, sample.target)};
  std::move(sample.target.begin(), sample.target.end(), std::back_inserter(sample.source));
  const Tokenizer both = make(files.source_tokenizer, sample.source);
  return {both, both};
}

}  // namespace

bool train_translation(const TranslationFiles& files, const TranslationRecipe& wanted, const std::string& out,
                       const TrainingObserver& observer, int64_t memory) {
  const auto say = [&](const std::string& line) {
    if (observer.on_message) observer.on_message(line);
  };
  check(wanted.training);
  check(wanted.text);
  if (wanted.training.schedule == Schedule::cosine && wanted.training.max_steps == 0)
    fail("training: schedule is cosine and max_steps is 0, wanted the step at which the learning rate is to reach 0");
  if (std::count(files.train.begin(), files.train.end(), "-") + std::count(files.dev.begin(), files.dev.end(), "-") > 1)
    fail("training: standard input (-) was given as more than one text, wanted files but for one");
  if (wanted.text.joint_vocabulary && !files.target_tokenizer.empty())
    fail("training: a target tokeniser was given with joint_vocabulary, wanted joint_vocabulary false");
  const RunDirectory run(out);
  const bool resumed = std::filesystem::exists(out);
  if (resumed && !std::filesystem::exists(run.training()))
    fail("{}: exists and holds no training.json, wanted a run that was trained there, or a new directory", out);

  const ParallelCorpus text(files.train, wanted.text.lowercase);
  ParallelText dev = read_parallel(files.dev, wanted.text.lowercase);
  for (const auto& [files_of, lines] : {std::pair{&files.train, text.size()}, {&files.dev, dev.size()}})
    if (lines == 0) fail("{}: holds no sentence pair", files_of->front());
  const TokenizerPair tokenizers = resumed ? load_tokenizers(run, "") : make_tokenizers(files, wanted.text, text, say);
  TranslationRecipe recipe = wanted;
  recipe.model.source_vocab = tokenizers.source.size();
  recipe.model.target_vocab = tokenizers.target.size();
  check(recipe.model);
  if (resumed) {
    const TranslationRecipe saved{load_recipe(run), load_text(run)};
    if (memory > 0) recipe.training.batch_tokens = saved.training.batch_tokens;
    check_same(run, saved, recipe);
  }

  say(fmt::format(
      "vocabulary: {} pieces{}", tokenizers.source.size(),
      recipe.text.joint_vocabulary ? " for both languages" : fmt::format(" and {} pieces", tokenizers.target.size())));
  const bool fit = memory > 0 && !resumed;
  Evaluator evaluator(std::move(dev), tokenizers.source, tokenizers.target, recipe.model.max_length,
                      fit ? std::numeric_limits<int32_t>::max() : recipe.training.batch_tokens);
  if (fit) {
    recipe.training.batch_tokens =
        fit_batch_tokens(recipe, std::max(recipe.model.max_length, evaluator.longest()),
                         std::min<int64_t>(text.size() * recipe.model.max_length, std::numeric_limits<int32_t>::max()),
                         evaluator, static_cast<size_t>(memory));
    evaluator.set_batch_tokens(recipe.training.batch_tokens);
    say(fmt::format("batch_tokens {}: the most for {} MiB", recipe.training.batch_tokens, memory >> 20));
  }
  BatchStream stream(
      text, tokenizers.source, tokenizers.target,
      {recipe.model.max_length, recipe.training.batch_tokens, static_cast<uint64_t>(recipe.training.seed)});
  if (!resumed) {
    stream.seek({});  // a text without a usable pair leaves no run behind
    create_run(run, {recipe.model, tokenizers, trained_translation(tokenizers, recipe.text.lowercase)},
               [&](const RunDirectory& partial) {
                 make_directory(partial.checkpoints());
                 write_file_atomic(partial.training(), json_from_fields(recipe.training));
                 write_file_atomic(partial.text(), json_from_fields(recipe.text));
               });
  }
  TranslationTask task(recipe, stream, evaluator);
  return Trainer(recipe, run, task, observer).run();
}

}  // namespace qkv
