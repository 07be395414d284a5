#include "decode/generation/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/fail.h"
#include "core/fields.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/generation/sampler.h"
#include "decode/search/ensemble.h"
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

// A text that is being generated.
struct GenerationScheduler::Growing {
  GenerationRequest request;
  SearchOptions search;
  int64_t rows;               // reserved
  std::vector<int32_t> text;  // including the start token
  TextCache::Text* seen;      // the part of it that the model sees
  Random random;
  GeneratedIds result = {};
  TokenCounts counts = {};  // of the tokens of the result, if a penalty needs them
  int32_t next = -1;        // the token chosen last; −1: none
  std::exception_ptr error = {};
};

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

GenerationScheduler::GenerationScheduler(TextCache& cache, const TextEnds& ends, const GenerationLimits& limits)
    : cache_(cache), ends_(ends), limits_(limits), longest_(cache.model().config().max_length) {}
GenerationScheduler::~GenerationScheduler() = default;

void GenerationScheduler::add(GenerationRequest request) {
  const int64_t rows = rows_needed(cache_.model().config(), ends_, request);
  const int64_t cost = std::ssize(request.prompt) + request.options->max_tokens;
  const int64_t turn = turns_.next(request.client, cost);
  insert_by_turn(waiting_, Waiting{std::move(request), rows, turn});
}

void GenerationScheduler::remove(uint64_t key) {
  waiting_.remove_if([&](const Waiting& waiting) { return waiting.request.key == key; });
  const auto growing = std::ranges::find_if(growing_, [&](const Growing& g) { return g.request.key == key; });
  if (growing != growing_.end()) close(growing);
}

void GenerationScheduler::pause(uint64_t key, bool paused) {
  for (Waiting& waiting : waiting_)
    if (waiting.request.key == key) waiting.paused = paused;
  for (Growing& growing : growing_)
    if (growing.request.key == key) growing.seen->paused = paused;
}

bool GenerationScheduler::step(Arena& arena, const Done& done, const Start& on_start) {
  bool any = start(done, on_start);
  if (std::ranges::all_of(growing_, [](const Growing& g) { return g.seen->paused; })) return any;
  for (const Place growing : read(arena)) {
    const std::optional<End> end = growing->error ? End::length : accept(*growing);
    if (!end) continue;
    Result result{growing->request.key, std::move(growing->result), growing->error};
    result.text.end = *end;
    close(growing);
    done(std::move(result));
  }
  return true;
}

// Starts texts. Returns whether there was one.
bool GenerationScheduler::start(const Done& done, const Start& on_start) {
  bool any = false;
  std::vector<Waiting*> passed;  // those without room
  for (auto text = waiting_.begin(); text != waiting_.end() && std::ssize(growing_) < limits_.texts;) {
    const std::string& client = text->request.client;
    if (text->paused || !client_texts_.leaves_enough(client, 1, limits_.texts) ||
        !client_rows_.leaves_enough(client, text->rows, limits_.rows)) {
      text++;
      continue;
    }
    if (std::ranges::any_of(passed, [](const Waiting* w) { return w->overtaken >= kMostOvertaken; })) break;
    if (text->rows > limits_.rows - rows_) {
      passed.push_back(&*text++);
      continue;
    }
    for (Waiting* w : passed) w->overtaken++;
    any = true;
    turns_.start(text->turn);
    Waiting next = std::move(*text);
    text = waiting_.erase(text);
    if (next.request.options->max_tokens == 0)
      done({next.request.key});
    else
      begin(std::move(next.request), next.rows, on_start);
  }
  return any;
}

void GenerationScheduler::begin(GenerationRequest&& request, int64_t rows, const Start& on_start) {
  std::vector<int32_t> text = ends_.beginning(request.prompt, request.is_complete);
  TextCache::Text& seen = cache_.open(seen_part(text, longest_), request.salt);
  const uint64_t key = request.key;
  SearchOptions search = search_options(*request.options, ends_);
  Random random = sampling_random(request.options->seed, request.prompt, 0);
  growing_.push_back({std::move(request), std::move(search), rows, std::move(text), &seen, random});
  rows_ += rows;
  client_texts_.take(growing_.back().request.client, 1);
  client_rows_.take(growing_.back().request.client, rows);
  if (on_start) on_start(key, static_cast<int64_t>(seen.shared));
}

// Reads the next tokens, and chooses a token for each text that has been read completely.
std::vector<GenerationScheduler::Place> GenerationScheduler::read(Arena& arena) {
  const Arena::Scope scope(arena);
  Context context{.arena = arena, .inference = true};
  std::vector<TextCache::Text*> ready;
  const Matrix<float> h = cache_.step(ready, context);
  const Matrix<float> logits = cache_.model().output().logits(h, context);
  const Matrix<float> log_p = log_mean_probability({&logits, 1});
  std::vector<Place> places;
  for (const TextCache::Text* text : ready) places.push_back(std::ranges::find(growing_, text, &Growing::seen));
  parallel_for(log_p.rows, [&](int64_t n) {
    Growing& growing = *places[to_size(n)];
    try {
      choose(growing, {log_p.row(n), to_size(log_p.cols)});
    } catch (...) {
      growing.error = std::current_exception();
    }
  });
  return places;
}

void GenerationScheduler::choose(Growing& growing, std::span<float> log_p) const {
  GeneratedIds& result = growing.result;
  const GenerationOptions& options = *growing.request.options;
  if (std::isnan(log_p.front())) fail("the model's output is not finite");
  if (options.alternatives > 0) result.alternatives.push_back(most_probable(log_p, options.alternatives));
  const size_t length = growing.request.prompt.size() + result.ids.size();
  NextToken next = next_token(log_p, std::span(growing.text).last(length), growing.search);
  add_biases(next, growing.counts, options);
  growing.next = sample(next, options, growing.random);
  if (growing.next >= 0) result.log_probabilities.push_back(next.log_p(growing.next));
}

// Appends the chosen token. Returns why the text ends there, if it does.
std::optional<End> GenerationScheduler::accept(Growing& growing) {
  GeneratedIds& result = growing.result;
  const GenerationOptions& options = *growing.request.options;
  if (growing.next < 0) return End::length;
  if (std::ranges::find(ends_.ends, growing.next) != ends_.ends.end()) return End::document;
  result.ids.push_back(growing.next);
  growing.text.push_back(growing.next);
  if (options.presence_penalty != 0 || options.frequency_penalty != 0) growing.counts[growing.next]++;
  if (options.on_token && options.on_token(growing.request.key, result)) return End::caller;
  if (std::ssize(result.ids) == options.max_tokens) return End::length;
  if (std::ssize(growing.seen->ids) < longest_) {
    cache_.append(*growing.seen, growing.next);
    return {};
  }
  if (!options.slide) return End::context;
  const bool paused = growing.seen->paused;
  cache_.close(*growing.seen);
  growing.seen = &cache_.open(seen_part(growing.text, longest_), growing.request.salt);
  growing.seen->paused = paused;
  return {};
}

void GenerationScheduler::close(Place growing) {
  cache_.close(*growing->seen);
  rows_ -= growing->rows;
  client_texts_.give_back(growing->request.client, 1);
  client_rows_.give_back(growing->request.client, growing->rows);
  growing_.erase(growing);
}

void generate_ids(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t, GeneratedIds&&)>& done, bool is_complete) {
  check(cache.model().config(), ends, options);
  GenerationScheduler generating(cache, ends, {.texts = options.batch});
  for (const auto& prompt : prompts) {
    GenerationRequest request{static_cast<uint64_t>(&prompt - prompts.data()), prompt, &options};
    request.is_complete = is_complete;
    check(cache.model().config(), ends, request);
    generating.add(std::move(request));
  }
  const auto accept = [&](GenerationScheduler::Result&& result) {
    if (result.error) std::rethrow_exception(result.error);
    done(result.key, std::move(result.text));
  };
  while (generating.step(arena, accept)) {
  }
}

GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena) {
  TextCache cache(model, 0);
  GeneratedIds result;
  generate_ids(cache, {{prompt.begin(), prompt.end()}}, ends, options, arena,
               [&](size_t, GeneratedIds&& text) { result = std::move(text); });
  return result;
}

}  // namespace qkv
