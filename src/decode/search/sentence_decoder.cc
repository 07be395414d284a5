#include "decode/search/sentence_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/to_size.h"
#include "decode/search/forced.h"
#include "decode/search/search.h"
#include "decode/search/sentence_search.h"

namespace qkv {
namespace {

// β Σ_j log min(Σ_i a_ij, 1), over all target tokens i and the S source tokens j (Wu et al., 2016, section 7). A sum of
// weights that underflowed counts as the smallest one, so that the score is finite.
double coverage(const std::vector<float>& attention, size_t S, double beta) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  double total = 0;
  for (size_t j = 0; j < S; j++) {
    double sum = 0;
    for (size_t i = j; i < attention.size(); i += S) sum += static_cast<double>(attention[i]);
    total += std::log(std::clamp(sum, kSmallest, 1.0));
  }
  return beta * total;
}

void add_coverage(const Ensemble& models, const SearchInput& input, std::vector<Decoded>& found,
                  const SearchOptions& options, Arena& arena) {
  std::vector<std::vector<int32_t>> targets;
  for (const Decoded& d : found) targets.push_back(d.with_end(options.end));
  std::vector<ForcedInput> pairs;
  for (const auto& target : targets) pairs.push_back({input.source, target, input.start});
  const std::vector<Forced> forced =
      force_all(models, pairs, options.start, ForcedValues::attention, options.attention, arena);
  for (size_t i = 0; i < found.size(); i++)
    found[i].score += coverage(forced[i].attention, input.source.size(), options.coverage_penalty);
}

// Alternatives are found by a first search that ends after one token, which finds the best tokens after the prefix, and
// a second one that completes each.
SearchOptions first_options(const DecodingRequest& request) {
  SearchOptions first = *request.options;
  first.beam = first.n_best;
  first.max_length = std::ssize(request.input.prefix) + 1;
  first.on_token = nullptr;
  return first;
}

SearchOptions rest_options(const DecodingRequest& request) {
  SearchOptions rest = *request.options;
  rest.n_best = 1;
  return rest;
}

}  // namespace

DecodingNeed decoding_need(const Ensemble& models, const DecodingRequest& request) {
  const auto need = [&](const SearchOptions& options, int64_t times) {
    check(options, models.config().target_vocab);
    const CacheRows rows = rows_needed(models, request.input, options);
    return DecodingNeed{live_hypotheses(request.input, options), cache_bytes(models, rows), rows * times};
  };
  const SearchOptions first_search = request.alternatives ? first_options(request) : *request.options;
  check(models, request.input, first_search);
  const DecodingNeed first = need(first_search, 1);
  if (!request.alternatives) return first;
  const DecodingNeed rest = need(rest_options(request), request.options->n_best);
  return {std::max(first.rows, rest.rows), std::max(first.bytes, rest.bytes), first.total + rest.total};
}

// A request in progress.
struct SentenceDecoder::Request {
  DecodingRequest asked;
  SearchOptions first = {}, rest = {};  // of alternatives
  bool completing = false;              // alternatives are in their second search
  bool paused = false;
  std::vector<Decoded> found = {};
  std::vector<const Sequence*> searches = {};  // that complete each of `found`; null: it is complete
  size_t open = 1;                             // number of searches that are not finished
};

SentenceDecoder::SentenceDecoder(const Ensemble& models, const CacheRows& rows, const EngineLimits& limits,
                                 Arena& memory, Arena& scratch)
    : models_(models), scratch_(scratch), cache_(models, rows, memory), engine_(cache_, limits, scratch) {}
SentenceDecoder::~SentenceDecoder() = default;

void SentenceDecoder::add(const DecodingRequest& asked) {
  Request& request = *(requests_[asked.key] = std::make_unique<Request>(Request{asked}));
  if (asked.alternatives) {
    request.first = first_options(asked);
    request.rest = rest_options(asked);
  }
  const SearchOptions& options = asked.alternatives ? request.first : *asked.options;
  engine_.add(std::make_unique<SentenceSearch>(models_, asked.key, asked.input, options), asked.client, asked.cost);
}

void SentenceDecoder::remove(uint64_t key) {
  engine_.remove(key);
  requests_.erase(key);
}

void SentenceDecoder::pause(uint64_t key, bool paused) {
  const auto request = requests_.find(key);
  if (request == requests_.end()) return;
  request->second->paused = paused;
  engine_.pause(key, paused);
}

bool SentenceDecoder::step(std::vector<Result>& results, const Start& on_start) {
  Engine::Done done;
  const bool any = engine_.step(done, [&](const Sequence& search) {
    if (on_start && !requests_.at(search.key())->completing) on_start(search.key());
  });
  for (const auto& search : done) settle(static_cast<SentenceSearch&>(*search), results);
  return any;
}

void SentenceDecoder::settle(SentenceSearch& search, std::vector<Result>& results) {
  const uint64_t key = search.key();
  Request& request = *requests_.at(key);
  const SearchInput& input = request.asked.input;
  std::exception_ptr error;
  request.open--;
  if (!request.asked.alternatives) {
    request.found = ranked(search.take_found(), input, *request.asked.options);
  } else if (!request.completing) {
    request.found = search.take_found();
    error = begin_alternatives(request);
  } else {
    const auto number = std::ranges::find(request.searches, &search) - request.searches.begin();
    std::vector<Decoded> found = ranked(search.take_found(), input, request.rest);
    if (!found.empty()) request.found[to_size(number)] = std::move(found.front());
  }
  if (request.open > 0) return;
  if (error)
    results.push_back({key, {}, error});
  else
    results.push_back({key, std::move(request.found)});
  requests_.erase(key);
}

// Starts a second search for each alternative that has not ended, in front of the sentences that wait; or none, and
// returns the error, if one of them has no room for a token.
std::exception_ptr SentenceDecoder::begin_alternatives(Request& request) {
  request.completing = true;
  request.searches.resize(request.found.size());
  std::vector<std::unique_ptr<Sequence>> searches;
  for (size_t i = 0; i < request.found.size(); i++) {
    if (request.found[i].ended) continue;
    const SearchInput input{request.asked.input.source, request.found[i].ids, request.asked.input.start};
    try {
      check(models_, input, request.rest);
    } catch (const Error&) {
      return std::current_exception();
    }
    searches.push_back(std::make_unique<SentenceSearch>(models_, request.asked.key, input, request.rest));
    searches.back()->pause(request.paused);
    request.searches[i] = searches.back().get();
  }
  request.open = searches.size();
  engine_.add_first(std::move(searches), request.asked.client);
  return {};
}

// Adds the coverage penalty, and keeps the best hypotheses.
std::vector<Decoded> SentenceDecoder::ranked(std::vector<Decoded> found, const SearchInput& input,
                                             const SearchOptions& options) {
  if (options.coverage_penalty > 0) add_coverage(models_, input, found, options, scratch_);
  std::ranges::stable_sort(found, is_better<Decoded>);
  if (std::ssize(found) > options.n_best) found.resize(to_size(options.n_best));
  return found;
}

namespace {

std::vector<std::vector<Decoded>> decode(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, bool alternatives, Arena& arena) {
  const Arena::Scope scope(arena);
  std::vector<DecodingRequest> requests;
  CacheRows rows;
  for (const SearchInput& input : inputs) {
    requests.push_back({requests.size(), input, &options, alternatives});
    rows = rows + decoding_need(models, requests.back()).total;
  }
  SentenceDecoder decoder(models, rows, {}, arena, arena);
  for (const DecodingRequest& request : requests) decoder.add(request);
  std::vector<std::vector<Decoded>> found(inputs.size());
  for (std::vector<SentenceDecoder::Result> results; decoder.step(results); results.clear())
    for (SentenceDecoder::Result& result : results) {
      if (result.error) std::rethrow_exception(result.error);
      found[result.key] = std::move(result.found);
    }
  return found;
}

}  // namespace

std::vector<std::vector<Decoded>> n_best(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena) {
  return decode(models, inputs, options, false, arena);
}

std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena) {
  return decode(models, inputs, options, true, arena);
}

}  // namespace qkv
