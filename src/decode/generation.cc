#include "decode/generation.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>
#include <optional>

#include "core/fail.h"
#include "core/fields.h"
#include "core/threads.h"
#include "core/to_size.h"
#include "decode/mean_probability.h"
#include "decode/sampler.h"
#include "decode/search.h"

namespace qkv {
namespace {

using End = GeneratedIds::End;

// A text that is being generated.
struct Growing {
  size_t prompt;
  std::vector<int32_t> text;  // including the start token
  TextCache::Text* seen;      // the part of it that the model sees
  Random random;
  GeneratedIds result = {};
  int32_t next = -1;  // the token chosen last; −1: none
};

GeneratedIds::Alternatives best_of(std::span<const float> log_p, int64_t count) {
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

class Generating {
 public:
  Generating(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options)
      : cache_(cache), prompts_(prompts), ends_(ends), options_(options) {
    const ModelConfig& model = cache.model().config();
    longest_ = model.max_length;
    check_ranges<GenerateOptions>(options);
    static_cast<SamplingOptions&>(search_) = options;
    search_.never = options.never;
    search_.start = ends.start;
    search_.end = ends.ends.front();
    search_.beam = 1;
    check(search_, model.target_vocab);
    for (const auto& prompt : prompts) {
      for (const int32_t token : prompt)
        if (token < 0 || token >= model.target_vocab)
          fail("prompt: token must be between 0 and {} (is {})", model.target_vocab - 1, token);
      if (!options.slide && std::ssize(prompt) >= longest_)
        fail("prompt must have fewer than {} tokens, the model's max_length (has {})", longest_, prompt.size());
    }
  }

  using Done = std::function<void(size_t, GeneratedIds&&)>;

  void generate(Arena& arena, const Done& done) {
    for (size_t next = 0; next < prompts_.size() || !growing_.empty();) {
      if (next < prompts_.size() && std::ssize(growing_) < options_.batch) {
        begin(next++, done);
        continue;
      }
      for (const auto& growing : step(arena))
        if (const auto end = accept(*growing)) finish(growing, *end, done);
    }
  }

 private:
  using Place = std::list<Growing>::iterator;

  void begin(size_t prompt, const Done& done) {
    if (options_.max_tokens == 0) return done(prompt, {});
    std::vector<int32_t> text = ends_.beginning(prompts_[prompt]);
    TextCache::Text& seen = cache_.open(visible(text));
    growing_.push_back({prompt, std::move(text), &seen, sampling_random(options_.seed, prompts_[prompt], 0)});
  }

  // Returns the whole text, or its last max_length / 2 tokens if it is longer than max_length.
  std::span<const int32_t> visible(const std::vector<int32_t>& text) const {
    if (std::ssize(text) <= longest_) return text;
    return std::span(text).last(to_size(std::max<int64_t>(1, longest_ / 2)));
  }

  // Reads the next tokens, and chooses a token for each text that has been read completely.
  std::vector<Place> step(Arena& arena) {
    const Arena::Scope scope(arena);
    Context context{.arena = arena, .inference = true};
    std::vector<TextCache::Text*> ready;
    const Matrix<float> h = cache_.step(ready, context);
    const Matrix<float> logits = cache_.model().output().logits(h, context);
    const Matrix<float> log_p = log_mean_probability({&logits, 1});
    std::vector<Place> places;
    for (const TextCache::Text* text : ready) places.push_back(std::ranges::find(growing_, text, &Growing::seen));
    parallel_for_throwing(log_p.rows, [&](int64_t n) {
      choose(*places[to_size(n)], {log_p.row(n), to_size(log_p.cols)});
    });
    return places;
  }

  void choose(Growing& growing, std::span<float> log_p) const {
    GeneratedIds& result = growing.result;
    if (std::isnan(log_p.front())) fail("the model's output is not finite");
    if (options_.alternatives > 0) result.alternatives.push_back(best_of(log_p, options_.alternatives));
    const size_t length = prompts_[growing.prompt].size() + result.ids.size();
    const NextToken next = next_token(log_p, std::span(growing.text).last(length), search_);
    growing.next = sample(next, options_, growing.random);
    if (growing.next >= 0) result.log_probabilities.push_back(next.log_p(growing.next));
  }

  // Appends the chosen token. Returns why the text ends there, if it does.
  std::optional<End> accept(Growing& growing) {
    GeneratedIds& result = growing.result;
    if (growing.next < 0) return End::length;
    if (std::ranges::find(ends_.ends, growing.next) != ends_.ends.end()) return End::document;
    result.ids.push_back(growing.next);
    growing.text.push_back(growing.next);
    if (options_.on_token && options_.on_token(growing.prompt, result)) return End::caller;
    if (std::ssize(result.ids) == options_.max_tokens) return End::length;
    if (std::ssize(growing.seen->ids) < longest_) {
      cache_.append(*growing.seen, growing.next);
      return {};
    }
    if (!options_.slide) return End::context;
    cache_.close(*growing.seen);
    growing.seen = &cache_.open(visible(growing.text));
    return {};
  }

  void finish(Place growing, End end, const Done& done) {
    cache_.close(*growing->seen);
    growing->result.end = end;
    const size_t prompt = growing->prompt;
    GeneratedIds result = std::move(growing->result);
    growing_.erase(growing);
    done(prompt, std::move(result));
  }

  TextCache& cache_;
  const Prompts& prompts_;
  const TextEnds& ends_;
  const GenerationOptions& options_;
  SearchOptions search_;
  int64_t longest_;
  std::list<Growing> growing_;
};

}  // namespace

void generate_ids(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t, GeneratedIds&&)>& done) {
  Generating(cache, prompts, ends, options).generate(arena, done);
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
