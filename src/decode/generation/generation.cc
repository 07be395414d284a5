#include "decode/generation/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "decode/engine/engine.h"
#include "decode/search/sampler.h"
#include "decode/search/search.h"

namespace qkv {
namespace {

using End = GeneratedIds::End;

constexpr double kMostBias = 100;

// Returns the part of a text that the model sees: all of it, or the last max_length / 2 tokens if it is longer.
std::span<const int32_t> seen_part(const std::vector<int32_t>& text, int64_t max_length) {
  if (std::ssize(text) <= max_length) return text;
  return std::span(text).last(to_size(std::max<int64_t>(1, max_length / 2)));
}

// Returns the options of the search that generation shares with translation.
SearchOptions search_options(const GenerationOptions& options, const TextEnds& ends) {
  SearchOptions search;
  static_cast<SamplingOptions&>(search) = options;
  search.never = options.never;
  search.start = ends.start;
  search.end = ends.ends.front();
  search.beam = 1;
  return search;
}

}  // namespace

GeneratedIds::Alternatives most_probable(std::span<const float> log_p, int64_t count) {
  std::vector<int32_t> tokens(log_p.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto middle = tokens.begin() + std::min(count, std::ssize(tokens));
  const auto p = [&](int32_t token) { return log_p[to_size(token)]; };
  std::partial_sort(tokens.begin(), middle, tokens.end(),
                    [&](int32_t a, int32_t b) { return p(a) != p(b) ? p(a) > p(b) : a < b; });
  GeneratedIds::Alternatives best;
  for (auto token = tokens.begin(); token != middle; token++) best.emplace_back(*token, p(*token));
  return best;
}

CompletePrompt::CompletePrompt(const TextEnds& ends, std::vector<int32_t> tokens)
    : ids(std::move(tokens)), is_complete(true) {
  if (ids.empty() || ids.front() != ends.start || (!ends.starts_prompts && ids.size() > 1)) return;
  ids.erase(ids.begin());
  is_complete = false;
}

void check(const ModelConfig& model, const TextEnds& ends, const GenerationOptions& options) {
  check_ranges<GenerateOptions>(options);
  check(search_options(options, ends), model.target_vocab);
}

void check(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request) {
  check(model, ends, *request.options);
  for (const auto& [token, bias] : request.options->logit_bias) {
    if (token < 0 || token >= model.target_vocab)
      fail("logit_bias: token must be between 0 and {} (is {})", model.target_vocab - 1, token);
    if (!(std::abs(bias) <= kMostBias)) fail("logit_bias must be between -{0} and {0} (is {1})", kMostBias, bias);
  }
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= model.target_vocab)
      fail("prompt: token must be between 0 and {} (is {})", model.target_vocab - 1, token);

  if (!request.options->slide && std::ssize(request.prompt) - (request.is_complete ? 1 : 0) >= model.max_length)
    fail("prompt must have fewer than {} tokens, the model's max_length (has {})", model.max_length,
         request.prompt.size());
}

int64_t rows_needed(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request) {
  const std::vector<int32_t> text = ends.beginning(request.prompt, request.is_complete);
  return std::min(std::ssize(seen_part(text, model.max_length)) + request.options->max_tokens, model.max_length);
}

TextGeneration::TextGeneration(const ModelConfig& model, const TextEnds& ends, GenerationRequest request)
    : Sequence(request.key, {1, {rows_needed(model, ends, request), 0}}),
      ends_(ends),
      request_(std::move(request)),
      options_(*request_.options),
      search_(search_options(options_, ends)),
      longest_(model.max_length),
      text_(ends.beginning(request_.prompt, request_.is_complete)),
      random_(sampling_random(options_.seed, request_.prompt, 0)),
      is_done_(options_.max_tokens == 0) {}

void TextGeneration::open(KeyValueCache& cache) { seen_ = &cache.open(seen_part(text_, longest_), request_.salt); }

RowRange TextGeneration::predicting() const {
  if (seen_->last < 0) return {};
  return {seen_->last, seen_->last + 1};
}

void TextGeneration::extend(Matrix<float> log_p, int64_t row, KeyValueCache&) {
  try {
    choose({log_p.row(row), to_size(log_p.cols)});
  } catch (...) {
    error_ = std::current_exception();
  }
}

void TextGeneration::choose(std::span<float> log_p) {
  if (std::isnan(log_p.front())) fail("the model's output is not finite");
  if (options_.alternatives > 0) result_.alternatives.push_back(most_probable(log_p, options_.alternatives));
  const size_t length = request_.prompt.size() + result_.ids.size();
  NextToken next = next_token(log_p, std::span(text_).last(length), search_);
  add_biases(next, counts_, options_);
  next_ = sample(next, options_, random_);
  if (next_ >= 0) result_.log_probabilities.push_back(next.log_p(next_));
}

void TextGeneration::emit(KeyValueCache& cache) {
  if (!error_)
    if (const std::optional<End> end = accept(cache)) result_.end = *end, is_done_ = true;
  is_done_ |= error_ != nullptr;
}

// Appends the chosen token. Returns why the text ends there, if it does.
std::optional<End> TextGeneration::accept(KeyValueCache& cache) {
  if (next_ < 0) return End::length;
  if (std::ranges::find(ends_.ends, next_) != ends_.ends.end()) return End::document;
  result_.ids.push_back(next_);
  text_.push_back(next_);
  if (options_.presence_penalty != 0 || options_.frequency_penalty != 0) counts_[next_]++;
  if (options_.on_token && options_.on_token(key(), result_)) return End::caller;
  if (std::ssize(result_.ids) == options_.max_tokens) return End::length;
  if (std::ssize(seen_->ids) < longest_) {
    cache.append(*seen_, next_);
    return {};
  }
  if (!options_.slide) return End::context;
  cache.close(*seen_);
  open(cache);
  return {};
}

GeneratedIds TextGeneration::take() {
  if (error_) std::rethrow_exception(error_);
  return std::move(result_);
}

void generate_ids(KeyValueCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t, GeneratedIds&&)>& done, bool is_complete) {
  const ModelConfig& model = cache.models().config();
  check(model, ends, options);
  Engine engine(cache, {.rows = options.batch}, arena);
  for (const auto& prompt : prompts) {
    GenerationRequest request{static_cast<uint64_t>(&prompt - prompts.data()), prompt, &options};
    request.is_complete = is_complete;
    check(model, ends, request);
    engine.add(std::make_unique<TextGeneration>(model, ends, std::move(request)));
  }
  for (Engine::Done texts; engine.step(texts); texts.clear())
    for (const auto& text : texts) done(text->key(), static_cast<TextGeneration&>(*text).take());
}

GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena) {
  KeyValueCache cache(model, 0);
  GeneratedIds result;
  generate_ids(cache, {{prompt.begin(), prompt.end()}}, ends, options, arena,
               [&](size_t, GeneratedIds&& text) { result = std::move(text); });
  return result;
}

}  // namespace qkv
