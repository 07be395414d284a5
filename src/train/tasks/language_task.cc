#include "train/tasks/language_task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/generation/generation.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"

namespace qkv {
namespace {

TextBatchOptions options_of(const LanguageRecipe& recipe) {
  const int64_t longest = std::min(recipe.model.max_length, recipe.training.batch_tokens);
  return {longest, recipe.training.batch_tokens, static_cast<uint64_t>(recipe.training.seed)};
}

}  // namespace

LanguageTask::LanguageTask(const LanguageRecipe& recipe, const TextCodec& codec, const TextEnds& ends,
                           const TokenStream& text, const TokenStream& dev)
    : recipe_(recipe),
      codec_(codec),
      ends_(ends),
      text_(text),
      dev_(dev),
      fingerprint_(fingerprint_of(text)),
      batches_(text, options_of(recipe)),
      dev_batches_(dev, options_of(recipe)) {}

int64_t LanguageTask::batches(const LanguageRecipe& recipe, const TokenStream& text) {
  return TextBatches(text, options_of(recipe)).shuffled(0).batches();
}

bool LanguageTask::seek(const StreamPosition& position) {
  epoch_ = batches_.shuffled(position.epoch);
  position_ = position;
  return position.window == 0 && position.batch < epoch_.batches();
}

void LanguageTask::next() {
  batches_.fill(epoch_, position_.batch, batch_);
  skip();
}

void LanguageTask::skip() {
  if (++position_.batch == epoch_.batches()) seek({position_.epoch + 1, 0, 0});
}

std::string LanguageTask::summary() const {
  return fmt::format("training data: {} documents, {} tokens, {} batches per epoch", text_.starts.size(),
                     text_.predictions(), epoch_.batches());
}

Loss LanguageTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  return gradients.loss_and_gradient(batch_, objective_of(recipe_.training), c);
}

std::vector<TextPlace> LanguageTask::places_of(std::span<const int64_t> tokens) const {
  std::vector<TextPlace> places;
  int64_t at = 0;  // token of the last place
  for (const int64_t token : tokens) {
    const auto document = std::ranges::upper_bound(text_.starts, token) - text_.starts.begin() - 1;
    const int64_t start = text_.starts[to_size(document)];
    TextPlace place = text_.places[to_size(document)];
    if (at > start) place = places.back();
    at = std::max(at, start + 1);  // the start token is no text
    if (token > at) {
      const std::string between = codec_.decode(std::span(text_.ids).subspan(to_size(at), to_size(token - at)));
      place.line += std::ranges::count(between, '\n');
      at = token;
    }
    places.push_back(place);
  }
  return places;
}

std::string LanguageTask::places(const StreamPosition& position, TokenSide, std::span<const int64_t> rows) {
  seek(position);
  std::vector<TextBatches::Piece> ranges;  // of tokens
  const auto piece = [&](int64_t s) { return epoch_.pieces[to_size(epoch_.offsets[to_size(position.batch)] + s)]; };
  for (const int64_t row : rows) {
    const int64_t s = batch_.target.sequences_of({&row, 1}).front();
    const int64_t token = piece(s).begin + row - batch_.target.offsets[to_size(s)];
    ranges.push_back({token, token + 1});
  }
  for (int64_t s = 0; rows.empty() && s < batch_.target.sequences(); s++) ranges.push_back(piece(s));
  std::ranges::sort(ranges, {}, &TextBatches::Piece::begin);
  std::vector<int64_t> ends;  // the first and the last token of each range
  for (const auto& [begin, end] : ranges) ends.insert(ends.end(), {begin, end - 1});
  const std::vector<TextPlace> places = places_of(ends);
  std::map<int64_t, LineRanges> lines;  // by file
  for (size_t i = 0; i < places.size(); i += 2) lines[places[i].file].emplace_back(places[i].line, places[i + 1].line);
  std::vector<std::string> names;
  for (const auto& [file, own] : lines) names.push_back(name_lines(own, text_.files[to_size(file)]));
  return fmt::format("{}", fmt::join(names, "; "));
}

DevScore LanguageTask::evaluate(const Transformer<float>& model, Arena& arena) {
  Batch batch;
  Context context{arena};
  const TextBatches::Epoch epoch = dev_batches_.in_order();
  const Loss loss = loss_of_batches(partition_, epoch.batches(), [&](int64_t b) {
    dev_batches_.fill(epoch, b, batch);
    return model.loss(batch, recipe_.training.label_smoothing, context);
  });
  const auto tokens = static_cast<double>(loss.tokens);
  const double bits = loss.nll / std::numbers::ln2 / static_cast<double>(dev_.bytes);
  return {loss.loss / tokens,
          bits,
          {},
          {{"loss", loss.nll / tokens, 4}, {"perplexity", std::exp(loss.nll / tokens), 3}, {"bits/byte", bits, 4}}};
}

std::string LanguageTask::sample(const Transformer<float>& model, Arena& arena) {
  if (recipe_.language.sample_tokens == 0) return "";
  GenerationOptions options;
  options.max_tokens = recipe_.language.sample_tokens;
  options.temperature = 0.8;
  options.seed = static_cast<uint64_t>(recipe_.training.seed);
  return "sample:\n" + codec_.decode(generate_ids(model, {}, ends_, options, arena).ids);
}

void LanguageTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const TrainingConfig& config = recipe_.training;
  const int64_t longest = std::max(batches_.longest(), dev_batches_.longest());
  fill_largest_batch(candidate.config(), config.batch_tokens, longest, batch_);
  Context training = training_context(arena, config, 0), evaluation{arena};
  loss_and_gradient(gradients, training);
  candidate.loss(batch_, config.label_smoothing, evaluation);
  sample(candidate, arena);
}

}  // namespace qkv
