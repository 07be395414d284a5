#include "decode/engine/engine.h"

#include <algorithm>
#include <utility>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "qkv/system.h"

namespace qkv {

// Sequences whose next tokens are computed together: the best tokens without the same others, or log p of all tokens.
struct Engine::Group {
  const Excluded* excluded = nullptr;  // null: log p of all tokens
  size_t candidates = 0;               // the most of a sequence
  std::vector<Sequence*> sequences = {};
  std::vector<RowRange> tokens = {};     // of each sequence, in the step
  std::vector<int64_t> first_rows = {};  // of each sequence, in the group
  int64_t rows = 0;
  BestNext best = {};
  Matrix<float> log_p = {};  // [rows, V]

  void add(Sequence* sequence) {
    candidates = std::max(candidates, sequence->candidates());
    sequences.push_back(sequence);
    tokens.push_back(sequence->predicting());
    first_rows.push_back(rows);
    rows += tokens.back().rows();
  }
  NextRequest request() const {
    if (!excluded) return {tokens};
    return {tokens, static_cast<int64_t>(candidates), excluded->tokens};
  }
};

Engine::Engine(KeyValueCache& cache, const EngineLimits& limits, Arena& scratch)
    : models_(cache.models()), cache_(cache), limits_(limits), context_{.arena = scratch, .inference = true} {}

int64_t Engine::bytes_of(const CacheRows& rows) const { return cache_bytes(models_, rows); }

// ---- What waits

void Engine::add(std::unique_ptr<Sequence> sequence, const std::string& client, int64_t cost) {
  insert_by_turn(waiting_, Entry{std::move(sequence), client, turns_.next(client, cost)});
}

void Engine::add_first(std::vector<std::unique_ptr<Sequence>> sequences, const std::string& client) {
  const auto place = waiting_.begin();
  const int64_t turn = waiting_.empty() ? 0 : place->turn;
  for (auto& sequence : sequences) waiting_.insert(place, {std::move(sequence), client, turn});
}

void Engine::remove(uint64_t key) {
  waiting_.remove_if([&](const Entry& entry) { return entry.sequence->key() == key; });
  running_.remove_if([&](const Entry& entry) {
    if (entry.sequence->key() != key) return false;
    entry.sequence->close(cache_);
    give_back(entry);
    return true;
  });
}

void Engine::pause(uint64_t key, bool paused) {
  for (std::list<Entry>* entries : {&waiting_, &running_})
    for (const Entry& entry : *entries)
      if (entry.sequence->key() == key) entry.sequence->pause(paused);
}

// ---- Room

bool Engine::fits(const SequenceNeed& need, int64_t encoded) const {
  return need.rows <= limits_.rows - rows_ && bytes_of(reserved_ + need.cache) <= limits_.bytes &&
         cache_.has_room(encoded + need.cache.cross);  // one range for all sources of this step is sufficient
}

bool Engine::leaves_room(const Entry& entry) const {
  const SequenceNeed& need = entry.sequence->need();
  return client_rows_.leaves_enough(entry.client, need.rows, limits_.rows) &&
         client_bytes_.leaves_enough(entry.client, bytes_of(need.cache), limits_.bytes);
}

void Engine::take(const Entry& entry) {
  const SequenceNeed& need = entry.sequence->need();
  client_rows_.take(entry.client, need.rows);
  client_bytes_.take(entry.client, bytes_of(need.cache));
  rows_ += need.rows;
  reserved_ = reserved_ + need.cache;
  turns_.start(entry.turn);
}

void Engine::give_back(const Entry& entry) {
  const SequenceNeed& need = entry.sequence->need();
  client_rows_.give_back(entry.client, need.rows);
  client_bytes_.give_back(entry.client, bytes_of(need.cache));
  rows_ -= need.rows;
  reserved_ = reserved_ + need.cache * -1;
}

// Starts what has room. Returns whether there was something.
bool Engine::start(Done& done, const Start& on_start) {
  const int64_t most = limits_.in_pieces ? kEncodedTokens * threads() : std::numeric_limits<int64_t>::max();
  int64_t encoded = 0;
  bool any = false;
  std::vector<Sequence*> sentences;
  std::vector<Entry*> passed;  // those without room
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    Sequence& sequence = *entry->sequence;
    const int64_t source = sequence.need().cache.cross;
    if (sequence.paused() || !leaves_room(*entry)) {
      entry++;
      continue;
    }
    if (!sentences.empty() && source > most - encoded) break;
    if (std::ranges::any_of(passed, [](const Entry* e) { return e->overtaken >= kMostOvertaken; })) break;
    if (!fits(sequence.need(), encoded)) {
      passed.push_back(&*entry++);
      continue;
    }
    for (Entry* e : passed) e->overtaken++;
    any = true;
    const auto next = entry++;
    if (sequence.is_done()) {  // nothing is asked for
      turns_.start(next->turn);
      done.push_back(std::move(next->sequence));
      waiting_.erase(next);
      continue;
    }
    take(*next);
    running_.splice(running_.end(), waiting_, next);
    if (models_.config().is_decoder_only())
      sequence.start(cache_, {});
    else
      sentences.push_back(&sequence);
    encoded += source;
    if (on_start) on_start(sequence);
  }
  if (!sentences.empty()) open(sentences);
  return any;
}

void Engine::open(const std::vector<Sequence*>& sequences) {
  Packed sources;
  std::vector<int64_t> slots;
  for (const Sequence* sequence : sequences) {
    sources.append(sequence->source());
    slots.push_back(sequence->need().rows);
  }
  std::vector<KeyValueCache::Sentence> rows = cache_.open(sources, slots, context_);
  for (size_t i = 0; i < sequences.size(); i++) sequences[i]->start(cache_, std::move(rows[i]));
}

// ---- A step

std::vector<Sequence*> Engine::running() const {
  std::vector<Sequence*> all;
  for (const Entry& entry : running_)
    if (!entry.sequence->paused()) all.push_back(entry.sequence.get());
  return all;
}

bool Engine::step(Done& done, const Start& on_start) {
  const bool any = start(done, on_start);
  const std::vector<Sequence*> all = running();
  if (all.empty()) return any;
  const Arena::Scope scope(context_.arena);
  const std::vector<Group> groups = next_of(all);
  for (const Group& group : groups)
    parallel_for(std::ssize(group.sequences), [&](int64_t i) {
      const size_t s = to_size(i);
      if (group.excluded)
        group.sequences[s]->extend(group.best, group.first_rows[s], cache_);
      else
        group.sequences[s]->extend(group.log_p, group.first_rows[s], cache_);
    });
  for (Sequence* sequence : all)
    if (sequence->predicting() != RowRange()) sequence->emit(cache_);
  take_done(done);
  return true;
}

std::vector<Engine::Group> Engine::next_of(const std::vector<Sequence*>& all) {
  cache_.begin_step();
  for (Sequence* sequence : all) sequence->read(cache_);
  cache_.end_step();
  std::vector<Group> groups;
  Group whole;
  for (Sequence* sequence : all) {
    if (sequence->predicting() == RowRange()) continue;  // its prompt is still being read
    const Excluded* excluded = sequence->excluded();
    const auto alike =
        std::ranges::find_if(groups, [&](const Group& g) { return excluded && *g.excluded == *excluded; });
    Group& group = !excluded ? whole : alike != groups.end() ? *alike : groups.emplace_back(Group{excluded});
    group.add(sequence);
  }
  if (whole.rows > 0) groups.push_back(std::move(whole));

  std::vector<NextRequest> requests;
  for (const Group& group : groups) requests.push_back(group.request());
  std::vector<std::vector<NextResult>> results;  // of each model
  for (size_t m = 0; m < models_.size(); m++)
    results.push_back(models_[m].step(cache_.step(), cache_.layers(m), requests, context_));
  for (size_t g = 0; g < groups.size(); g++) {
    Group& group = groups[g];
    if (group.excluded) {
      group.best = best_next(results.front()[g].best, *group.excluded);
      continue;
    }
    std::vector<Matrix<float>> logits;
    for (const std::vector<NextResult>& of_model : results) logits.push_back(of_model[g].logits);
    group.log_p = log_mean_probability(logits);
  }
  return groups;
}

void Engine::take_done(Done& done) {
  for (auto entry = running_.begin(); entry != running_.end();) {
    const auto next = entry++;
    if (!next->sequence->is_done()) continue;
    next->sequence->close(cache_);
    give_back(*next);
    done.push_back(std::move(next->sequence));
    running_.erase(next);
  }
}

void Engine::rehearse(const std::function<void(Sequence&)>& enlarge) {
  Done done;
  start(done, {});
  const Arena::Scope scope(context_.arena);
  const std::vector<Sequence*> all = running();
  for (Sequence* sequence : all) enlarge(*sequence);
  next_of(all);
}

}  // namespace qkv
