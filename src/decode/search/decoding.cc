#include "decode/search/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/to_size.h"
#include "decode/search/batched.h"
#include "qkv/threads.h"

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
      force_all(models, pairs, options.start, WithAttention::yes, options.attention, arena);
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
    check(options, models.front().config().target_vocab);
    const CacheRows rows = rows_needed(models, request.input, options);
    return DecodingNeed{live_hypotheses(options), cache_bytes(models, rows), rows * times};
  };
  const SearchOptions first_search = request.alternatives ? first_options(request) : *request.options;
  check(models, {.input = request.input, .options = &first_search});
  const DecodingNeed first = need(first_search, 1);
  if (!request.alternatives) return first;
  const DecodingNeed rest = need(rest_options(request), request.options->n_best);
  return {std::max(first.rows, rest.rows), std::max(first.bytes, rest.bytes), first.total + rest.total};
}

// A request in progress.
struct SearchScheduler::Job {
  DecodingRequest request;
  SearchOptions first, rest;  // of alternatives
  bool completing = false;    // alternatives are in their second search
  std::vector<Decoded> found = {};
  size_t open = 1;  // number of searches that are not finished
  bool paused = false;
};

SearchScheduler::SearchScheduler(const Ensemble& models, const CacheRows& rows, const DecodingLimits& limits,
                                 Arena& memory, Arena& scratch)
    : models_(models), limits_(limits), scratch_(scratch), search_(models, rows, memory, scratch) {}
SearchScheduler::~SearchScheduler() = default;

SearchScheduler::Part SearchScheduler::part_of(Job& job, const SearchInput& input, const SearchOptions& options,
                                               size_t place) {
  return {tasks_++, &job, input, &options, place, rows_needed(models_, input, options)};
}

void SearchScheduler::add(const DecodingRequest& request) {
  Job& job = *(jobs_[request.key] = std::make_unique<Job>(Job{request, {}, {}}));
  if (request.alternatives) {
    job.first = first_options(request);
    job.rest = rest_options(request);
  }
  const SearchOptions& options = request.alternatives ? job.first : *request.options;
  Part part = part_of(job, request.input, options, 0);
  part.turn = turns_.next(request.client, request.cost);
  insert_by_turn(waiting_, std::move(part));
}

void SearchScheduler::release(const Part& part) {
  const std::string& client = part.job->request.client;
  client_rows_.give_back(client, live_hypotheses(*part.options));
  client_bytes_.give_back(client, cache_bytes(models_, part.need));
  rows_ -= live_hypotheses(*part.options);
  reserved_ = reserved_ + part.need * -1;
}

bool SearchScheduler::leaves_room(const Part& part) const {
  const std::string& client = part.job->request.client;
  return client_rows_.leaves_enough(client, live_hypotheses(*part.options), limits_.rows) &&
         client_bytes_.leaves_enough(client, cache_bytes(models_, part.need), limits_.bytes);
}

void SearchScheduler::remove(uint64_t key) {
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return;
  waiting_.remove_if([&](const Part& part) { return part.job == job->second.get(); });
  for (auto part = running_.begin(); part != running_.end();) {
    if (part->second.job != job->second.get()) {
      part++;
      continue;
    }
    search_.remove(part->first);
    release(part->second);
    part = running_.erase(part);
  }
  jobs_.erase(job);
}

void SearchScheduler::pause(uint64_t key, bool paused) {
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return;
  job->second->paused = paused;
  for (const auto& [task, part] : running_)
    if (part.job == job->second.get()) search_.pause(task, paused);
}

bool SearchScheduler::fits(const Part& part, int64_t encoded) const {
  return live_hypotheses(*part.options) <= limits_.rows - rows_ &&
         cache_bytes(models_, reserved_ + part.need) <= limits_.bytes &&
         search_.has_room(encoded + part.need.cross);  // one range for all sources of this step is sufficient
}

// Returns whether a request has started or failed.
bool SearchScheduler::start(std::vector<Result>& results, const Start& on_start) {
  const int64_t most = limits_.in_pieces ? kEncodedTokens * threads() : std::numeric_limits<int64_t>::max();
  int64_t encoded = 0;
  std::vector<SearchTask> tasks;
  std::vector<Part*> passed;  // those without room
  std::map<uint64_t, std::exception_ptr> failed;
  for (auto part = waiting_.begin(); part != waiting_.end();) {
    if (part->job->paused || !leaves_room(*part)) {
      part++;
      continue;
    }
    if (!tasks.empty() && part->need.cross > most - encoded) break;
    if (std::ranges::any_of(passed, [](const Part* p) { return p->overtaken >= kMostOvertaken; })) break;
    if (!fits(*part, encoded)) {
      passed.push_back(&*part++);
      continue;
    }
    const uint64_t key = part->job->request.key;
    const SearchTask task{part->task, static_cast<int64_t>(key), part->input, part->options};
    try {
      check(models_, task);  // the second search for alternatives may have no room for a token
    } catch (const Error&) {
      failed.emplace(key, std::current_exception());
      part++;
      continue;
    }
    for (Part* p : passed) p->overtaken++;
    encoded += part->need.cross;
    tasks.push_back(task);
    client_rows_.take(part->job->request.client, live_hypotheses(*part->options));
    client_bytes_.take(part->job->request.client, cache_bytes(models_, part->need));
    rows_ += live_hypotheses(*part->options);
    reserved_ = reserved_ + part->need;
    turns_.start(part->turn);
    if (on_start && !part->job->completing) on_start(key);
    running_.emplace(part->task, *part);
    part = waiting_.erase(part);
  }
  if (!tasks.empty()) search_.add(tasks);
  for (const auto& [key, error] : failed) {
    results.push_back({key, {}, error});
    remove(key);
  }
  return !tasks.empty() || !failed.empty();
}

bool SearchScheduler::step(std::vector<Result>& results, const Start& on_start) {
  bool any = start(results, on_start);
  if (search_.can_step()) {
    any = true;
    for (Search::Result& result : search_.step()) settle(std::move(result), results);
  }
  return any;
}

void SearchScheduler::settle(Search::Result&& result, std::vector<Result>& results) {
  const auto place = running_.find(result.key);
  const Part part = place->second;
  running_.erase(place);
  release(part);
  Job& job = *part.job;
  job.open--;
  if (job.request.alternatives && !job.completing) {
    job.found = std::move(result.found);
    begin_alternatives(job);
  } else {
    rank(part, result.found);
    if (!job.completing)
      job.found = std::move(result.found);
    else if (!result.found.empty())
      job.found[part.place] = std::move(result.found.front());
  }
  if (job.open > 0) return;
  results.push_back({job.request.key, std::move(job.found)});
  jobs_.erase(results.back().key);
}

void SearchScheduler::begin_alternatives(Job& job) {
  job.completing = true;
  const auto before = waiting_.begin();
  for (size_t i = 0; i < job.found.size(); i++) {
    if (job.found[i].ended) continue;
    const SearchInput& input = job.request.input;
    Part part = part_of(job, {input.source, job.found[i].ids, input.start}, job.rest, i);
    part.turn = before == waiting_.end() ? 0 : before->turn;
    waiting_.insert(before, std::move(part));
    job.open++;
  }
}

// Adds the coverage penalty, and keeps the best hypotheses.
void SearchScheduler::rank(const Part& part, std::vector<Decoded>& found) {
  const SearchOptions& options = *part.options;
  if (options.coverage_penalty > 0) add_coverage(models_, part.input, found, options, scratch_);
  std::ranges::stable_sort(found, std::greater<>(), &Decoded::score);
  if (std::ssize(found) > options.n_best) found.resize(to_size(options.n_best));
}

}  // namespace qkv
