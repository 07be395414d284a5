#include "decode/search/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/hash.h"
#include "core/to_size.h"

namespace qkv {

Random sampling_random(uint64_t seed, std::span<const int32_t> source, int64_t hypothesis) {
  const std::string_view bytes(reinterpret_cast<const char*>(source.data()), source.size_bytes());
  return Random(seed, Stream::sampling, hash_mix(hash_bytes(bytes), static_cast<uint64_t>(hypothesis)));
}

namespace {

int32_t best_token(std::span<const float> values) {
  const auto best = std::ranges::max_element(values);
  return *best > -INFINITY ? static_cast<int32_t>(best - values.begin()) : -1;
}

// Keeps the fewest tokens whose total probability reaches typical_p: those whose information content −log p is closest
// to the entropy of p. With weights w = exp(l) ∝ p, −log p − entropy is the mean of l minus l.
void keep_typical(std::vector<int32_t>& tokens, std::span<const float> values, const SamplingOptions& options) {
  const float highest = *std::ranges::max_element(values);
  const auto log_weight = [&](int32_t token) {
    return static_cast<double>(values[to_size(token)] - highest) / options.temperature;
  };
  double sum = 0, weighted = 0;
  for (const int32_t token : tokens) {
    const double l = log_weight(token);
    sum += std::exp(l);
    weighted += std::exp(l) * l;
  }
  const double mean = weighted / sum;
  std::ranges::stable_sort(tokens, {}, [&](int32_t token) { return std::abs(mean - log_weight(token)); });
  double reached = std::exp(log_weight(tokens[0]));
  size_t kept = 1;  // at least: typical_p may be a denormal number, which is 0 here
  while (kept < tokens.size() && reached < options.typical_p * sum) reached += std::exp(log_weight(tokens[kept++]));
  tokens.resize(kept);
  std::ranges::sort(tokens);
}

struct Scratch {
  std::vector<int32_t> tokens;  // allowed ones; most probable first if top_p applies
  std::vector<double> sums;     // of the weights exp((log q − max)/temperature) up to each token
};

// Returns memory that the thread keeps: for a large vocabulary the system would give new pages for each token.
Scratch& scratch(size_t tokens) {
  thread_local Scratch memory;
  memory.tokens.clear();
  memory.tokens.reserve(tokens);
  memory.sums.reserve(tokens);
  return memory;
}

}  // namespace

int32_t sample(const NextToken& next, const SamplingOptions& options, Random& random) {
  const std::span<const float> values = next.values;
  if (options.temperature == 0) return best_token(values);
  const double u = random.uniform();
  const float highest = *std::ranges::max_element(values);
  const double least = static_cast<double>(highest) + std::log(options.min_p);  // −∞ without min_p
  auto& [tokens, sums] = scratch(values.size());
  for (size_t v = 0; v < values.size(); v++)
    if (values[v] > -INFINITY && static_cast<double>(values[v]) >= least) tokens.push_back(static_cast<int32_t>(v));
  if (tokens.empty()) return -1;
  const auto value = [&](int32_t token) { return values[to_size(token)]; };
  const auto better = [&](int32_t a, int32_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; };
  if (options.top_k > 0 && options.top_k < std::ssize(tokens)) {
    std::nth_element(tokens.begin(), tokens.begin() + options.top_k, tokens.end(), better);
    tokens.resize(to_size(options.top_k));
    std::sort(tokens.begin(), tokens.end());
  }
  if (options.typical_p < 1) keep_typical(tokens, values, options);
  if (options.top_p < 1) std::sort(tokens.begin(), tokens.end(), better);

  sums.resize(tokens.size());
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); i++)
    sums[i] = sum += std::exp(static_cast<double>(value(tokens[i]) - highest) / options.temperature);
  const double nucleus = options.top_p * sum;
  const auto last = options.top_p < 1 ? std::ranges::lower_bound(sums, nucleus) : sums.end() - 1;
  const auto drawn = std::lower_bound(sums.begin(), last, u * *last);
  return tokens[to_size(drawn - sums.begin())];
}

}  // namespace qkv
