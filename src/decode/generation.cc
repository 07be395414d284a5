#include "decode/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/fail.h"
#include "decode/mean_probability.h"
#include "decode/sampler.h"
#include "decode/search.h"

namespace qkv {
namespace {

// The tokens that a model has read, at most max_length of them: row p of each layer's cache is that of position p.
class Reader {
 public:
  Reader(const Transformer<float>& model, int64_t capacity, Arena& arena)
      : model_(model), context_{.arena = arena, .inference = true} {
    for (const auto& layer : model.decoder().layers())
      caches_.push_back({arena.matrix<float>(capacity, layer.self_attention().keys_values_width()), {}});
  }

  int64_t size() const { return size_; }
  void forget() { size_ = 0; }

  // Reads tokens after those that it has; log_p: [V], of the next one.
  void read(std::span<const int32_t> ids, std::vector<float>& log_p) {
    const Arena::Scope scope(context_.arena);
    const auto N = static_cast<int64_t>(ids.size());
    places_.resize(ids.size());
    std::iota(places_.begin(), places_.end(), static_cast<int32_t>(size_));
    begins_.assign(ids.size(), 0);
    ends_.resize(ids.size());
    std::iota(ends_.begin(), ends_.end(), static_cast<int32_t>(size_) + 1);
    const Matrix<float> h =
        model_.step({ids, places_, places_, {nullptr, begins_.data(), ends_.data()}, {}}, caches_, context_);
    size_ += N;
    const Matrix<float> logits = model_.output().logits(h.row_range(N - 1, N), context_);
    const Matrix<float> last = log_mean_probability({&logits, 1});
    log_p.assign(last.row(0), last.row(0) + last.cols);
  }

 private:
  const Transformer<float>& model_;
  Context context_;
  std::vector<Layer<float>::Cache> caches_;
  int64_t size_ = 0;
  std::vector<int32_t> places_, begins_, ends_;
};

int32_t most_probable(const NextToken& next) {
  const auto best = std::ranges::max_element(next.values);
  return *best > -HUGE_VALF ? static_cast<int32_t>(best - next.values.begin()) : -1;
}

}  // namespace

GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena) {
  SearchOptions search = options.search;
  search.start = ends.start;
  search.end = ends.ends.front();
  search.beam = 1;
  check(search, model.config().target_vocab);
  if (options.max_tokens < 0) fail("generate: max_tokens is {}, wanted at least 0", options.max_tokens);
  for (const int32_t token : prompt)
    if (token < 0 || token >= model.config().target_vocab)
      fail("generate: token {} of the prompt, wanted 0 to {}", token, model.config().target_vocab - 1);
  const int64_t longest = model.config().max_length;
  const bool slides = options.context_end == ContextEnd::slide;
  if (!slides && std::ssize(prompt) >= longest)
    fail("generate: a prompt of {} tokens, wanted fewer than the model's max_length of {}", prompt.size(), longest);

  std::vector<int32_t> text;  // all of it
  if (prompt.empty() || ends.starts_prompts) text.push_back(ends.start);
  const size_t starts = text.size();
  text.insert(text.end(), prompt.begin(), prompt.end());
  const Arena::Scope scope(arena);
  Reader reader(model, std::min(longest, std::ssize(text) + options.max_tokens), arena);
  Random random = sampling_random(search.sampling.seed, prompt, 0);
  GeneratedIds result;
  std::vector<float> log_p;
  size_t unread = text.size();  // tokens at the end of the text
  while (std::ssize(result.ids) < options.max_tokens) {
    if (reader.size() + static_cast<int64_t>(unread) > longest) {
      if (!slides) {
        result.end = GeneratedIds::End::context;
        return result;
      }
      reader.forget();
      unread = static_cast<size_t>(std::max<int64_t>(1, longest / 2));
    }
    reader.read(std::span(text).last(unread), log_p);
    const NextToken next = next_token(log_p, std::span(text).subspan(starts), search);
    if (std::isnan(next.values.front())) fail("generate: the model gives no number");
    const int32_t token = search.sampling.enabled ? sample(next, search.sampling, random) : most_probable(next);
    if (token < 0) return result;
    result.log_probabilities.push_back(next.log_p(token));
    if (std::ranges::find(ends.ends, token) != ends.ends.end()) {
      result.end = GeneratedIds::End::document;
      return result;
    }
    result.ids.push_back(token);
    text.push_back(token);
    unread = 1;
    if (options.on_token && options.on_token(token, result.log_probabilities.back())) {
      result.end = GeneratedIds::End::caller;
      return result;
    }
  }
  return result;
}

}  // namespace qkv
