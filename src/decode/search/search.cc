#include "decode/search/search.h"

#include <algorithm>

#include "core/fail.h"
#include "core/fields.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/search/candidates.h"

namespace qkv {

void check(const SearchOptions& o, int64_t V) {
  check_ranges<DecodingOptions>(o);
  if (!o.sampling && o.n_best > o.beam)
    fail("n_best must be at most beam, {}, unless sampling (is {})", o.beam, o.n_best);
  if (o.on_token && !o.sampling && o.beam > 1) fail("on_token requires beam = 1 or sampling (beam is {})", o.beam);
  for (const int32_t token : o.never)
    if (token < 0 || token >= V) fail("never: token must be between 0 and {} (is {})", V - 1, token);
  for (const auto& [name, token] : {std::pair{"start", o.start}, {"end", o.end}})
    if (token < 0 || token >= V) fail("{} token must be between 0 and {} (is {})", name, V - 1, token);
}

int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length) {
  const int64_t wanted = options.max_length > 0 ? options.max_length : std::max(2 * S + 16, options.min_length + 1);
  return std::min(wanted, model_max_length);
}

int64_t max_tokens(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  return max_tokens(options, std::ssize(input.source), models.max_length() - tokens_forced(input.start));
}

CacheRows rows_needed(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  const int64_t tokens = max_tokens(models, input, options) + tokens_forced(input.start);
  return {live_hypotheses(options) * tokens, std::ssize(input.source)};
}

void check(const Ensemble& models, const SearchTask& task) {
  const int64_t V = models.front().config().target_vocab;
  check(*task.options, V);
  const SearchInput& input = task.input;
  const int64_t longest = max_tokens(models, input, *task.options);
  for (const int32_t id : input.start)
    if (id < 0 || id >= V) fail("start: token must be between 0 and {} (is {})", V - 1, id);
  if (longest < 1) fail("start must have fewer tokens than the model's max_length");
  for (const int32_t id : input.prefix)
    if (id < 0 || id >= V || id == task.options->end)
      fail("prefix: token must be between 0 and {} and not the end token (is {})", V - 1, id);
  if (std::ssize(input.prefix) >= longest)
    fail("prefix must have fewer than {} tokens, the maximum length of a translation (has {})", longest,
         input.prefix.size());
}

// Sentences whose next tokens are computed together: log p of all tokens, or the best tokens without the same others.
struct Search::Group {
  const Excluded* excluded = nullptr;  // null: log p of all tokens
  size_t candidates = 0;               // the most of a sentence
  std::vector<SentenceSearch*> sentences = {};
  std::vector<int64_t> first_rows = {};  // of each sentence, in the group
  int64_t rows = 0;
  BestNext best = {};
  Matrix<float> log_p = {};  // [rows, V]
};

Search::Search(const Ensemble& models, const CacheRows& rows, Arena& memory, Arena& scratch)
    : models_(models), context_{.arena = scratch, .inference = true}, cache_(models, rows, memory) {}
Search::~Search() = default;

void Search::add(std::span<const SearchTask> tasks) {
  Packed sources;
  std::vector<int64_t> live;
  for (const SearchTask& task : tasks) {
    check(models_, task);
    sources.append(task.input.source);
    live.push_back(live_hypotheses(*task.options));
  }
  std::vector<KeyValueCache::Sequence> rows = cache_.open(sources, live, context_);
  for (size_t i = 0; i < tasks.size(); i++)
    sentences_.push_back(std::make_unique<SentenceSearch>(models_, tasks[i], std::move(rows[i])));
}

bool Search::remove(uint64_t key) {
  const auto place = std::ranges::find(sentences_, key, &SentenceSearch::key);
  if (place == sentences_.end()) return false;
  (*place)->close(cache_);
  sentences_.erase(place);
  return true;
}

bool Search::pause(uint64_t key, bool paused) {
  const auto place = std::ranges::find(sentences_, key, &SentenceSearch::key);
  if (place == sentences_.end()) return false;
  (*place)->paused = paused;
  return true;
}

bool Search::can_step() const {
  return std::ranges::any_of(sentences_, [](const auto& s) { return !s->paused; });
}

std::vector<Search::Result> Search::step() {
  const Arena::Scope scope(context_.arena);
  std::vector<SentenceSearch*> all;
  for (const auto& s : sentences_)
    if (!s->paused) all.push_back(s.get());
  for (const Group& group : next_of_all(all))
    parallel_for(std::ssize(group.sentences), [&](int64_t i) {
      const size_t s = to_size(i);
      if (group.excluded)
        group.sentences[s]->extend(group.best, group.first_rows[s], cache_);
      else
        group.sentences[s]->extend(group.log_p, group.first_rows[s], cache_);
    });
  for (SentenceSearch* s : all) s->emit_tokens();
  std::vector<Result> results;
  for (SentenceSearch* s : all)
    if (s->is_done()) {
      s->close(cache_);
      results.push_back({s->key(), s->take_found()});
    }
  if (!results.empty()) std::erase_if(sentences_, [](const auto& s) { return s->is_done(); });
  return results;
}

// Returns the groups of the sentences, those with log p of all tokens last.
std::vector<Search::Group> Search::groups_of(const std::vector<SentenceSearch*>& all) {
  std::vector<Group> groups;
  Group whole;
  for (SentenceSearch* s : all) {
    Group* group = &whole;
    if (!s->needs_all()) {
      const auto known = std::ranges::find_if(groups, [&](const Group& g) { return *g.excluded == s->excluded(); });
      group = known != groups.end() ? &*known : &groups.emplace_back(Group{&s->excluded()});
    }
    group->candidates = std::max(group->candidates, s->candidates());
    group->sentences.push_back(s);
    group->first_rows.push_back(group->rows);
    group->rows += static_cast<int64_t>(s->hypotheses());
  }
  if (whole.rows > 0) groups.push_back(std::move(whole));
  return groups;
}

// The rows of a step are the tokens before the last ones of starts, which predict nothing, then those of each group.
std::vector<Search::Group> Search::next_of_all(const std::vector<SentenceSearch*>& all) {
  ids_.clear();
  cache_.begin_step();
  for (SentenceSearch* s : all) s->read_start(cache_, ids_);
  int64_t begin = std::ssize(ids_);
  std::vector<Group> groups = groups_of(all);
  for (const Group& group : groups)
    for (SentenceSearch* s : group.sentences) s->read(cache_, ids_);
  std::vector<Matrix<float>> hidden;
  for (size_t m = 0; m < models_.size(); m++) hidden.push_back(cache_.step(m, ids_, context_));
  for (Group& group : groups) {
    std::vector<Matrix<float>> rows;
    for (const Matrix<float>& h : hidden) rows.push_back(h.row_range(begin, begin + group.rows));
    if (group.excluded)
      group.best = best_next(models_.front(), rows.front(), *group.excluded, group.candidates, context_);
    else
      group.log_p = next_log_probabilities(models_, rows, context_);
    begin += group.rows;
  }
  return groups;
}

void Search::dry_run() {
  const Arena::Scope scope(context_.arena);
  std::vector<SentenceSearch*> all;
  for (const auto& s : sentences_) {
    s->dry_run(cache_);
    all.push_back(s.get());
  }
  next_of_all(all);
}

namespace {

std::vector<SearchTask> tasks_of(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                 const SearchOptions& options) {
  std::vector<SearchTask> tasks;
  for (const SearchInput& input : inputs) {
    tasks.push_back({tasks.size(), static_cast<int64_t>(tasks.size()), input, &options});
    check(models, tasks.back());
  }
  return tasks;
}

CacheRows rows_needed(const Ensemble& models, const std::vector<SearchTask>& tasks) {
  CacheRows rows;
  for (const SearchTask& task : tasks) rows = rows + rows_needed(models, task.input, *task.options);
  return rows;
}

}  // namespace

std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena) {
  const Arena::Scope scope(arena);
  const std::vector<SearchTask> tasks = tasks_of(models, inputs, options);
  Search search(models, rows_needed(models, tasks), arena, arena);
  search.add(tasks);
  std::vector<std::vector<Decoded>> results(inputs.size());
  while (search.can_step())
    for (Search::Result& result : search.step()) results[result.key] = std::move(result.found);
  return results;
}

void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena) {
  const Arena::Scope scope(arena);
  const std::vector<SearchTask> tasks = tasks_of(models, inputs, options);
  Search search(models, rows_needed(models, tasks), arena, arena);
  search.add(tasks);
  search.dry_run();
}

}  // namespace qkv
