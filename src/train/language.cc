// qkv::train_language: from plain text to a trained run directory.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/language_run.h"
#include "text/unicode.h"
#include "train/language_task.h"
#include "train/resume.h"
#include "train/schedule.h"
#include "train/trainer.h"

namespace qkv {
namespace {

constexpr int64_t kMostLines = 1'000'000;  // that pieces are learned from
constexpr size_t kMaxTextBytes = size_t{1} << 34;

// The files' contents, and the documents in them.
struct Text {
  std::vector<std::string> contents;
  std::vector<std::string_view> documents;

  Text(const std::vector<std::string>& files, const LanguageConfig& config) {
    for (const std::string& file : files) contents.push_back(read_file(file, kMaxTextBytes));
    for (size_t i = 0; i < files.size(); i++) {
      if (config.unit != TextUnit::bytes)
        if (const size_t bad = find_invalid_utf8(contents[i]); bad != std::string::npos)
          fail("{}: byte {} is not valid UTF-8, wanted text, or --unit bytes", files[i], bad + 1);
      const std::vector<std::string_view> own = split_documents(contents[i], config.document_end);
      if (own.empty()) fail("{}: holds no text", files[i]);
      documents.insert(documents.end(), own.begin(), own.end());
    }
  }
  Text(const Text&) = delete;  // the documents lie in the contents
  Text& operator=(const Text&) = delete;
};

// SentencePiece's, learned from the lines of the text or, of a long one, from a part of them.
Tokenizer train_pieces(const LanguageConfig& config, const std::vector<std::string_view>& train) {
  int64_t count = 0;
  for (const std::string_view document : train) count += std::count(document.begin(), document.end(), '\n') + 1;
  const int64_t every = (count + kMostLines - 1) / kMostLines;
  std::vector<std::string> lines;
  int64_t line = 0;
  for (std::string_view document : train)
    while (!document.empty()) {
      const size_t length = std::min(document.find('\n'), document.size() - 1) + 1;
      if (line++ % every == 0) lines.emplace_back(document.substr(0, length));
      document.remove_prefix(length);
    }
  return Tokenizer::train(lines, {.kind = config.tokenizer, .vocab_size = config.vocab_size, .exact = true});
}

TextCodec codec_of(const std::string& tokenizer, const LanguageConfig& config,
                   const std::vector<std::string_view>& train, const std::vector<std::string_view>& dev) {
  if (!tokenizer.empty() && config.unit != TextUnit::pieces)
    fail("training: a tokeniser is given and unit is {}, wanted pieces", name_of(config.unit));
  if (has_tokenizer_json(config.unit))
    fail("training: unit is {}, which models from elsewhere have, wanted characters, bytes or pieces",
         name_of(config.unit));
  if (config.unit == TextUnit::bytes) return {};
  if (config.unit == TextUnit::pieces)
    return TextCodec::of_pieces(tokenizer.empty() ? train_pieces(config, train) : Tokenizer::load(tokenizer));
  std::vector<std::string_view> all = train;
  all.insert(all.end(), dev.begin(), dev.end());
  return TextCodec::of_characters(all);
}

}  // namespace

bool train_language(const LanguageFiles& files, const LanguageRecipe& wanted, const std::string& out,
                    const TrainingObserver& observer) {
  check(wanted.training);
  check(wanted.language);
  const RunDirectory run(out);
  const bool resumed = std::filesystem::exists(out);
  if (resumed && !(std::filesystem::exists(run.training()) && std::filesystem::exists(run.language())))
    fail("{}: exists and holds no language.json, wanted a run that was trained there, or a new directory", out);

  Text text(files.text, wanted.language);
  const Text dev(files.dev, wanted.language);
  const std::vector<std::string_view> aside =
      files.dev.empty() ? take_end(text.documents, wanted.language.dev_share) : dev.documents;
  if (text.documents.empty() || aside.empty())
    fail("{}: is too short to keep {} of it aside", files.text.front(), wanted.language.dev_share);
  const TextCodec codec = resumed ? load_codec(run) : codec_of(files.tokenizer, wanted.language, text.documents, aside);
  const TokenStream train_stream = stream_of(text.documents, codec, files.text.front());
  const TokenStream dev_stream = stream_of(aside, codec, files.dev.empty() ? files.text.front() : files.dev.front());
  if (observer.on_message)
    observer.on_message(fmt::format("text: {} bytes to learn from, {} kept aside, {} kinds of tokens",
                                    train_stream.bytes, dev_stream.bytes, codec.size()));

  LanguageRecipe recipe = wanted;
  recipe.model.source_vocab = recipe.model.encoder_layers = 0;
  recipe.model.shared_embeddings = false;
  recipe.model.target_vocab = codec.size();
  check(recipe.model);
  LanguageTask task(recipe, codec, train_stream, dev_stream);
  end_by_steps(recipe.training, task.batches());
  if (resumed) check_same(run, LanguageRecipe{load_recipe(run), load_language(run)}, recipe);
  if (!resumed)
    make_run(run, [&](const RunDirectory& partial) {
      make_directory(partial.checkpoints());
      write_file_atomic(partial.config(), to_json(recipe.model));
      write_file_atomic(partial.training(), json_from_fields(recipe.training));
      write_file_atomic(partial.language(), json_from_fields(recipe.language));
      save_codec(partial, codec);
    });
  return Trainer(recipe, run, task, observer).run();
}

}  // namespace qkv
