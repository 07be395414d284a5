#include "train/tasks/masked_task.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/encoder/spelled_piece.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"

namespace qkv {
namespace {

constexpr MaskSource kDevMasks{0, Stream::dev_masks, 0};

TextBatchOptions options_of_batches(const EncoderRecipe& recipe) {
  const int64_t longest = std::min(recipe.model.max_length, recipe.training.batch_tokens);
  return {longest, recipe.training.batch_tokens, static_cast<uint64_t>(recipe.training.seed)};
}

MaskingOptions masking_of(const EncoderConfig& c) {
  return {c.mask_share, c.mask_token_share, c.random_token_share, c.whole_words, c.mask_span};
}

// Tokens of the training text may replace others.
MaskingVocabulary vocabulary_of(const MaskedVocabulary& v, const EncoderRecipe& recipe, const TokenStream& text) {
  const size_t size = to_size(recipe.model.source_vocab);
  MaskingVocabulary vocabulary{v.mask, std::vector<bool>(size), {}, {}};
  vocabulary.fixed[to_size(v.mask)] = true;
  for (const auto* ids : {&v.edges.before, &v.edges.after})
    for (const int32_t id : *ids) vocabulary.fixed[to_size(id)] = true;
  std::vector<bool> occurs(size);
  for (const int32_t id : text.ids) occurs[to_size(id)] = !vocabulary.fixed[to_size(id)];
  for (size_t id = 0; id < size; id++)
    if (occurs[id]) vocabulary.replacements.push_back(static_cast<int32_t>(id));
  if (!recipe.encoder.whole_words) return vocabulary;
  vocabulary.begins_word.resize(size);
  for (int32_t id = 0; id < v.codec.size(); id++)
    vocabulary.begins_word[to_size(id)] = spelled_piece(v.codec, id).starts_with(kWordStart);
  return vocabulary;
}

MaskedBatches batches_of(const MaskedVocabulary& v, const EncoderRecipe& recipe, const TokenStream& train,
                         const TokenStream& text) {
  return MaskedBatches(text, options_of_batches(recipe), v.edges.before, v.edges.after, masking_of(recipe.encoder),
                       vocabulary_of(v, recipe, train));
}

}  // namespace

int64_t MaskedTask::batches(const EncoderRecipe& recipe, const TextEdges& edges, const TokenStream& text) {
  const MaskedBatches batches(text, options_of_batches(recipe), edges.before, edges.after, {}, {});
  return batches.pieces().shuffled(0).batches();
}

MaskedTask::MaskedTask(const EncoderRecipe& recipe, const MaskedVocabulary& vocabulary, const TokenStream& text,
                       const TokenStream& dev)
    : recipe_(recipe),
      text_(text),
      fingerprint_(fingerprint_of(text)),
      batches_(batches_of(vocabulary, recipe, text, text)),
      dev_batches_(batches_of(vocabulary, recipe, text, dev)) {}

bool MaskedTask::seek(const StreamPosition& position) {
  epoch_ = batches_.pieces().shuffled(position.epoch);
  position_ = position;
  return position.window == 0 && position.batch < epoch_.batches();
}

void MaskedTask::next() {
  const auto seed = static_cast<uint64_t>(recipe_.training.seed);
  batches_.fill(epoch_, position_.batch, {seed, Stream::masks, position_.epoch}, batch_);
  skip();
}

void MaskedTask::skip() {
  if (++position_.batch == epoch_.batches()) seek({position_.epoch + 1, 0, 0});
}

std::string MaskedTask::summary() const {
  return fmt::format("training data: {} documents, {} tokens, {} batches per epoch", text_.starts.size(),
                     text_.predictions(), epoch_.batches());
}

Loss MaskedTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  return gradients.loss_and_gradient(batch_, objective_of(recipe_.training), c);
}

// Names the lines in which the documents begin, because the tokens of a document do not have its line breaks. Rows of
// the target side are masked tokens.
std::string MaskedTask::places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) {
  seek(position);
  std::vector<int64_t> tokens;  // of the batch
  for (const int64_t row : rows) tokens.push_back(side == TokenSide::target ? batch_.masked[to_size(row)] : row);
  std::vector<int64_t> sequences = batch_.source.sequences_of(tokens);
  for (int64_t s = 0; rows.empty() && s < batch_.source.sequences(); s++) sequences.push_back(s);
  std::map<int64_t, LineRanges> lines;  // by file
  for (const int64_t s : sequences) {
    const int64_t begin = epoch_.pieces[to_size(epoch_.offsets[to_size(position.batch)] + s)].begin;
    const auto document = std::ranges::upper_bound(text_.starts, begin) - text_.starts.begin() - 1;
    const TextPlace& place = text_.places[to_size(document)];
    lines[place.file].emplace_back(place.line, place.line);
  }
  std::vector<std::string> names;
  for (auto& [file, own] : lines) {
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    names.push_back(name_lines(own, text_.files[to_size(file)]));
  }
  return fmt::format("{}{}", recipe_.encoder.lines ? "" : "documents from ", fmt::join(names, "; "));
}

DevScore MaskedTask::evaluate(const Transformer<float>& model, Arena& arena) {
  Batch batch;
  Context context{arena};
  const TextBatches::Epoch epoch = dev_batches_.pieces().in_order();
  const Loss loss = loss_of_batches(partition_, epoch.batches(), [&](int64_t b) {
    dev_batches_.fill(epoch, b, kDevMasks, batch);
    return model.loss(batch, recipe_.training.label_smoothing, context);
  });
  const auto tokens = static_cast<double>(loss.tokens);
  const double perplexity = std::exp(loss.nll / tokens);
  return {loss.loss / tokens, perplexity, {}, {{"loss", loss.nll / tokens, 4}, {"perplexity", perplexity, 3}}};
}

void MaskedTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const TrainingConfig& config = recipe_.training;
  const int64_t longest = std::max(batches_.longest(), dev_batches_.longest());
  fill_largest_batch(candidate.config(), config.batch_tokens, longest, batch_);
  const int64_t masked = std::max(batches_.most_masked(), dev_batches_.most_masked());
  for (int64_t i = 0; i < masked; i++) batch_.masked.push_back(static_cast<int32_t>(i * config.batch_tokens / masked));
  batch_.labels.assign(to_size(masked), 0);
  Context training = training_context(arena, config, 0), evaluation{arena};
  loss_and_gradient(gradients, training);
  candidate.loss(batch_, config.label_smoothing, evaluation);
}

}  // namespace qkv
