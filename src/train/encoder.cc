// Training an encoder by masked language modelling: plain text, its tokens and its run directory.
#include "qkv/encoder.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/loop/train_on_files.h"
#include "train/optimizer/trained_parts.h"
#include "train/plain_text.h"
#include "train/tasks/masked_task.h"

namespace qkv {
namespace {

constexpr const char* kMask = "<mask>";  // of a tokenizer that is trained here

// Returns the mask token of a vocabulary; `where` names it in errors.
int32_t mask_of(const TextCodec& codec, const std::string& where) {
  for (const char* spelling : {kMask, "[MASK]"})
    if (const auto id = codec.id(spelling)) return *id;
  fail("{}: the vocabulary has no mask token ({} or [MASK])", where, kMask);
}

// Returns the model that a run is trained further with: that of the run, with layers that predict tokens.
ModelConfig with_token_head(ModelConfig model) {
  if (model.token_head != TokenHead::none) return model;
  model.token_head = TokenHead::dense;
  model.tied_output = model.output_bias = true;
  return model;
}

// Throws Error unless the model of a recipe is that of the run, which may have no token head.
void expect_same_encoder(const std::string& run, ModelConfig before, const ModelConfig& now) {
  if (!before.is_encoder_only()) fail("{}: encoder_layers must be at least 1 to train it as an encoder (is 0)", run);
  if (before.token_head == TokenHead::none) {
    before.token_head = now.token_head;
    before.tied_output = now.tied_output;
    before.output_bias = now.output_bias;
  }
  expect_same_shape(run, before, now);
}

// Writes the weights that training starts from: those of the initial run, and initial values of a head that it lacks.
void write_start(const std::string& init, const EncoderRecipe& recipe, const RunDirectory& to) {
  if (init.empty()) return;
  const EncoderRun run = load_run<EncoderRun>(init);
  expect_float32(RunDirectory(init), *run.model);
  Transformer<float> start(recipe.model);
  start.parameters().initialize(static_cast<uint64_t>(recipe.training.seed), recipe.training.initial_deviation);
  for (const Parameter<float>& from : run.model->parameters().all())
    for (const Parameter<float>& p : start.parameters().all())
      if (p.name == from.name) std::copy_n(from.value, from.size(), p.value);
  save_weights(to.start(), start.parameters(), start.parameters().values());
}

class EncoderData {
 public:
  static constexpr bool kCountsBatches = true, kFitsLimits = true;

  static void check(const EncoderRecipe& given, const EncoderFiles& files);
  static EncoderRecipe saved_recipe(const RunDirectory& run);

  EncoderData(const TrainingSession& session, const EncoderRecipe& given, const EncoderFiles& files);

  void set_sizes(EncoderRecipe& recipe) const;
  void set_limits(EncoderRecipe& recipe) const { set_cosine_end(recipe.training, batches(recipe)); }
  int64_t batches(const EncoderRecipe& recipe) const { return MaskedTask::batches(recipe, run_.edges, train_); }
  std::unique_ptr<Task> make_task(const EncoderRecipe& recipe) const;
  void create_run(const RunDirectory& run, const EncoderRecipe& recipe) const;

 private:
  EncoderRun new_run(const EncoderConfig& config, const std::vector<std::string_view>& documents) const;
  TokenStream stream_of(const std::vector<std::string_view>& documents, const std::vector<TextPlace>& places,
                        const std::string& where) const;
  void check_dev(const EncoderConfig& config, const std::vector<std::string_view>& all) const;

  const EncoderFiles& files_;
  EncoderRun run_;  // without weights
  MaskedVocabulary vocabulary_{run_.codec, run_.edges, -1};
  TokenStream train_, dev_;
};

void EncoderData::check(const EncoderRecipe& given, const EncoderFiles& files) {
  qkv::check(given.encoder);
  if (files.text.empty()) fail("training: text must name at least one file");
  const TrainingConfig& training = given.training;
  if (training.lora_rank != 0) fail("training: lora_rank must be 0 for an encoder (is {})", training.lora_rank);
  check_fine_tuning(training, files.init);
  if (training.r_drop != 0) fail("training: r_drop must be 0 for an encoder (is {})", training.r_drop);
  if (given.model.token_head == TokenHead::none) fail("training: token_head must be output or dense (is none)");
  if (!files.init.empty() && !files.tokenizer.empty())
    fail("training: a tokenizer model cannot be given with init, whose tokenizer is kept");
  for (const char* name : {"vocab_size", "tokenizer", "lowercase"}) {
    if (!given.given.contains(name)) continue;
    if (!files.init.empty()) fail("training: {} cannot be given with init, whose tokenizer is kept", name);
    if (!files.tokenizer.empty() && name != std::string_view("lowercase"))
      fail("training: {} cannot be given with a tokenizer model, which has its own", name);
  }
}

EncoderRecipe EncoderData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::encoder);
  return {read_recipe(run), read_fields<EncoderConfig>(run, run.encoder())};
}

EncoderData::EncoderData(const TrainingSession& session, const EncoderRecipe& given, const EncoderFiles& files)
    : files_(files) {
  const EncoderConfig& config = given.encoder;
  const std::string separator = config.lines ? "\n" : config.document_end;
  PlainText text(files.text, separator, "");
  const PlainText dev_text(files.dev, separator, "");
  const std::vector<std::string_view> all = text.documents;
  const bool has_dev = !files.dev.empty();
  const std::vector<std::string_view> dev = has_dev ? dev_text.documents : take_end(text.documents, config.dev_share);
  if (text.documents.empty() || dev.empty())
    fail("{}: is too short to set aside {} of it (dev_share)", files.text.front(), config.dev_share);
  if (session.resumed || !files.init.empty()) {
    if (session.resumed) expect_started_from(session.run, files.init);
    run_ = read_run<EncoderRun>(session.resumed ? session.run : RunDirectory(files.init));
    if (!session.resumed) expect_same_encoder(files.init, run_.config, given.model);
    if (!session.resumed) session.report(starting_report(files.init, given.training));
  } else {
    run_ = new_run(config, text.documents);
  }
  const std::string& tokenizer = files.init.empty() ? files.tokenizer : files.init;
  vocabulary_.mask = mask_of(run_.codec, session.resumed || tokenizer.empty() ? session.run.root() : tokenizer);
  train_ = stream_of(text.documents, places_of(text), files.text.front());
  train_.files = files.text;
  dev_ = stream_of(dev, std::vector<TextPlace>(dev.size()), has_dev ? files.dev.front() : files.text.front());
  if (!session.resumed && !files.init.empty()) check_dev(config, all);
  session.report(fmt::format("text: {} bytes for training, {} bytes for evaluation, {} pieces", train_.bytes,
                             dev_.bytes, run_.codec.size()));
}

// Returns a run with a tokenizer of its own.
EncoderRun EncoderData::new_run(const EncoderConfig& config, const std::vector<std::string_view>& documents) const {
  EncoderRun run;
  run.embedding.lowercase = config.lowercase;
  if (files_.tokenizer.empty()) {
    std::vector<std::string> lowered;
    for (size_t d = 0; config.lowercase && d < documents.size(); d++)
      lowered.push_back(prepare_text(run.embedding, std::string(documents[d])));
    const std::vector<std::string_view> views(lowered.begin(), lowered.end());
    run.codec = TextCodec::of_pieces(
        train_pieces({.kind = config.tokenizer, .vocab_size = config.vocab_size, .control = {kMask}},
                     config.lowercase ? views : documents));
  } else {
    run.codec = TextCodec::of_pieces(Tokenizer::load(files_.tokenizer));
  }
  const Tokenizer& tokenizer = run.codec.tokenizer();
  run.embedding.start = tokenizer.piece(tokenizer.start());
  run.embedding.end = tokenizer.piece(tokenizer.end());
  run.edges = edges_of(run.embedding, run.codec, "training");
  run.config.source_vocab = run.codec.size();
  return run;
}

// Tokenizes documents as the run embeds texts, without a prefix. Those without a token are left out.
TokenStream EncoderData::stream_of(const std::vector<std::string_view>& documents, const std::vector<TextPlace>& places,
                                   const std::string& where) const {
  EmbeddingConfig embedding = run_.embedding;
  embedding.prefix = "";
  TokenStream stream;
  stream.ends = EndTokens::none;
  for (size_t d = 0; d < documents.size(); d++) {
    const std::string text = prepare_text(embedding, std::string(documents[d]));
    const std::vector<int32_t> ids = run_.codec.encode_plain(text, where);
    if (ids.empty()) continue;
    stream.starts.push_back(std::ssize(stream.ids));
    stream.places.push_back(places[d]);
    stream.ids.insert(stream.ids.end(), ids.begin(), ids.end());
    stream.bytes += std::ssize(documents[d]);
  }
  if (stream.ids.empty()) fail("{}: has no token to mask in its {} documents", where, documents.size());
  return stream;
}

void EncoderData::check_dev(const EncoderConfig& config, const std::vector<std::string_view>& all) const {
  const RunDirectory init(files_.init);
  const bool was_trained = std::filesystem::exists(init.encoder());
  const double before = was_trained ? read_fields<EncoderConfig>(init, init.encoder()).dev_share : 0;
  const auto fingerprint = [&](const std::vector<std::string_view>& documents) {
    return fingerprint_of(stream_of(documents, std::vector<TextPlace>(documents.size()), files_.text.front()));
  };
  expect_untrained_dev(files_.init, fingerprint_of(dev_), {files_.dev, all, config.dev_share, before, fingerprint});
}

void EncoderData::set_sizes(EncoderRecipe& recipe) const {
  ModelConfig& model = recipe.model;
  model.target_vocab = model.decoder_layers = 0;
  model.shared_embeddings = false;
  model.source_vocab = run_.config.source_vocab;
  if (!files_.init.empty()) recipe.encoder.lowercase = run_.embedding.lowercase;
  if (!files_.init.empty() || !files_.tokenizer.empty()) recipe.encoder.vocab_size = model.source_vocab;
}

std::unique_ptr<Task> EncoderData::make_task(const EncoderRecipe& recipe) const {
  return std::make_unique<MaskedTask>(recipe, vocabulary_, train_, dev_);
}

void EncoderData::create_run(const RunDirectory& run, const EncoderRecipe& recipe) const {
  const EncoderRun parts{recipe.model, run_.embedding, run_.codec, run_.edges, run_.dense};
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.encoder(), recipe.encoder);
    write_start(files_.init, recipe, partial);
  });
}

}  // namespace

EncoderRecipe encoder_fine_tuning(const std::string& run) {
  const RunDirectory directory(run);
  EncoderRecipe recipe;
  recipe.model = with_token_head(read_run<EncoderRun>(directory).config);
  if (std::filesystem::exists(directory.encoder()))
    recipe.encoder = read_fields<EncoderConfig>(directory, directory.encoder());
  set_text_fine_tuning(recipe.training);
  return recipe;
}

bool train_encoder(const EncoderFiles& files, const EncoderRecipe& recipe, const std::string& out,
                   const TrainingObserver& observer, const RankOptions& ranks) {
  return train_on_text<EncoderData>(files, recipe, out, observer, ranks);
}

}  // namespace qkv
