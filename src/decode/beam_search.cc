#include "decode/beam_search.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/threads.h"
#include "ops/cross_entropy.h"

namespace qkv {
namespace {

struct Live {
  Hypothesis hypothesis;
  int64_t slot = 0;  // where its keys and values lie: rows [slot · capacity, slot · capacity + tokens) of the cache
};

struct Candidate {
  double log_probability = 0;
  int32_t parent = 0, token = 0;

  bool operator<(const Candidate& other) const {  // better first; ties by place, so that the order is fixed
    if (log_probability != other.log_probability) return log_probability > other.log_probability;
    return parent != other.parent ? parent < other.parent : token < other.token;
  }
};

struct Sentence {
  int32_t memory_begin = 0, memory_end = 0;
  int64_t max_tokens = 0;
  std::vector<Live> live;
  std::vector<Hypothesis> finished;  // best first
  int64_t first_row = 0;             // of its live hypotheses in this step's logits
};

class BeamSearch {
 public:
  BeamSearch(const Transformer<float>& model, const Packed& sources, const SearchOptions& options, Arena& arena)
      : model_(model), options_(options), context_{.arena = arena, .inference = true} {
    const int64_t beam = options.beam;
    for (int64_t s = 0; s < sources.sequences(); s++) {
      Sentence sentence;
      sentence.memory_begin = sources.offsets[static_cast<size_t>(s)];
      sentence.memory_end = sources.offsets[static_cast<size_t>(s) + 1];
      sentence.max_tokens =
          std::min(model.config().max_length, 2 * int64_t{sentence.memory_end - sentence.memory_begin} + 16);
      sentence.live.push_back({{}, s * beam});
      capacity_ = std::max(capacity_, sentence.max_tokens);
      sentences_.push_back(std::move(sentence));
    }
    const Matrix<float> memory = model.encode(sources, context_);
    for (const auto& layer : model.decoder().layers()) {
      const int64_t width = layer.self_attention().keys_values_width();
      caches_.push_back({arena.matrix<float>(sources.sequences() * beam * capacity_, width),
                         arena.matrix<float>(memory.rows, width)});
    }
    model.fill_cross(memory, caches_, context_);
  }

  std::vector<std::vector<Hypothesis>> run() {
    for (int64_t t = 0; any_live(); t++) {
      const Arena::Scope scope(context_.arena);
      const Matrix<float> scores = next_scores(t);
      parallel_for(static_cast<int64_t>(sentences_.size()),
                   [&](int64_t s) { advance(sentences_[static_cast<size_t>(s)], scores, t + 1); });
    }
    std::vector<std::vector<Hypothesis>> results;
    for (Sentence& s : sentences_) results.push_back(std::move(s.finished));
    return results;
  }

  void rehearse() {
    const Arena::Scope scope(context_.arena);
    for (Sentence& s : sentences_) {
      const Live first{{{options_.start}, 0, 0}, s.live.front().slot};
      s.live.assign(static_cast<size_t>(options_.beam), first);
      for (size_t i = 0; i < s.live.size(); i++) s.live[i].slot += static_cast<int64_t>(i);
    }
    for (const auto& cache : caches_)
      for (int64_t r = 0; r < cache.self.rows; r++) std::fill_n(cache.self.row(r), cache.self.cols, 0.0f);
    next_scores(capacity_ - 1);
  }

 private:
  bool any_live() const {
    return std::any_of(sentences_.begin(), sentences_.end(), [](const Sentence& s) { return !s.live.empty(); });
  }

  // log p of every next token, [live hypotheses, V], after t tokens.
  Matrix<float> next_scores(int64_t t) {
    ids_.clear(), new_rows_.clear(), self_begin_.clear(), self_end_.clear();
    cross_begin_.clear(), cross_end_.clear();
    for (Sentence& s : sentences_) {
      s.first_row = static_cast<int64_t>(ids_.size());
      for (const Live& live : s.live) {
        const int32_t row = static_cast<int32_t>(live.slot * capacity_);
        ids_.push_back(t == 0 ? options_.start : live.hypothesis.ids.back());
        new_rows_.push_back(row + static_cast<int32_t>(t));
        self_begin_.push_back(row);
        self_end_.push_back(row + static_cast<int32_t>(t) + 1);
        cross_begin_.push_back(s.memory_begin);
        cross_end_.push_back(s.memory_end);
      }
    }
    positions_.assign(ids_.size(), static_cast<int32_t>(t));
    const Matrix<float> h = model_.step({ids_,
                                         positions_,
                                         new_rows_,
                                         {nullptr, self_begin_.data(), self_end_.data()},
                                         {nullptr, cross_begin_.data(), cross_end_.data()}},
                                        caches_, context_);
    const Matrix<float> logits = model_.output().logits(h, context_);
    log_softmax<float>(logits);
    return logits;
  }

  // The best `count` continuations of a sentence's live hypotheses, best first.
  std::vector<Candidate> best_candidates(const Sentence& s, Matrix<const float> scores, size_t count) const {
    std::vector<Candidate> best;  // a heap, the worst on top
    for (size_t i = 0; i < s.live.size(); i++) {
      const float* row = scores.row(s.first_row + static_cast<int64_t>(i));
      const double before = s.live[i].hypothesis.log_probability;
      double bar = best.size() < count ? -INFINITY : best.front().log_probability - before;
      for (int64_t v = 0; v < scores.cols; v++) {
        if (!(static_cast<double>(row[v]) > bar)) continue;
        if (best.size() == count) {
          std::pop_heap(best.begin(), best.end());
          best.pop_back();
        }
        best.push_back({before + static_cast<double>(row[v]), static_cast<int32_t>(i), static_cast<int32_t>(v)});
        std::push_heap(best.begin(), best.end());
        if (best.size() == count) bar = best.front().log_probability - before;
      }
    }
    std::sort_heap(best.begin(), best.end());
    return best;
  }

  double score(double log_probability, int64_t tokens) const {
    return log_probability / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }

  void finish(Sentence& s, Hypothesis h, int64_t tokens) const {
    h.score = score(h.log_probability, tokens);
    const auto worse = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    s.finished.insert(std::upper_bound(s.finished.begin(), s.finished.end(), h, worse), std::move(h));
    if (s.finished.size() > static_cast<size_t>(options_.beam)) s.finished.pop_back();
  }

  // Takes a sentence from t − 1 to t tokens.
  void advance(Sentence& s, Matrix<const float> scores, int64_t t) {
    if (s.live.empty()) return;
    const size_t beam = static_cast<size_t>(options_.beam);
    const std::vector<Candidate> candidates = best_candidates(s, scores, 2 * beam);
    std::vector<Candidate> kept;
    for (size_t i = 0; i < candidates.size() && kept.size() < beam; i++) {
      const Candidate& c = candidates[i];
      if (c.token != options_.end)
        kept.push_back(c);
      else if (i < beam)
        finish(s, {s.live[static_cast<size_t>(c.parent)].hypothesis.ids, c.log_probability, 0}, t);
    }
    s.live = children(s, kept, t);
    const bool full = s.finished.size() == beam;
    if (full && (s.live.empty() || score(s.live.front().hypothesis.log_probability, t) <= s.finished.back().score)) {
      s.live.clear();
    } else if (t == s.max_tokens) {
      for (Live& live : s.live) finish(s, std::move(live.hypothesis), t);
      s.live.clear();
    }
  }

  // The first child of a parent goes on in its slot; further ones copy the t tokens so far into a slot that is free.
  std::vector<Live> children(const Sentence& s, const std::vector<Candidate>& kept, int64_t t) {
    const int64_t beam = options_.beam;
    const int64_t first_slot = (&s - sentences_.data()) * beam;
    std::vector<char> used(static_cast<size_t>(beam), 0), has_child(s.live.size(), 0);
    for (const Candidate& c : kept)
      used[static_cast<size_t>(s.live[static_cast<size_t>(c.parent)].slot - first_slot)] = 1;
    std::vector<Live> next;
    for (const Candidate& c : kept) {
      const Live& parent = s.live[static_cast<size_t>(c.parent)];
      Live child{parent.hypothesis, parent.slot};
      child.hypothesis.ids.push_back(c.token);
      child.hypothesis.log_probability = c.log_probability;
      if (has_child[static_cast<size_t>(c.parent)]) {
        const auto free = std::find(used.begin(), used.end(), 0);
        *free = 1;
        child.slot = first_slot + (free - used.begin());
        for (const auto& cache : caches_)
          std::copy_n(cache.self.row(parent.slot * capacity_), t * cache.self.cols,
                      cache.self.row(child.slot * capacity_));
      }
      has_child[static_cast<size_t>(c.parent)] = 1;
      next.push_back(std::move(child));
    }
    return next;
  }

  const Transformer<float>& model_;
  const SearchOptions& options_;
  Context context_;
  std::vector<Sentence> sentences_;
  int64_t capacity_ = 0;
  std::vector<DecoderLayer<float>::Cache> caches_;
  std::vector<int32_t> ids_, positions_, new_rows_, self_begin_, self_end_, cross_begin_, cross_end_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(const Transformer<float>& model, const Packed& sources,
                                                 const SearchOptions& options, Arena& arena) {
  if (options.beam < 1) fail("beam search: beam is {}, at least 1 is needed", options.beam);
  const Arena::Scope scope(arena);
  return BeamSearch(model, sources, options, arena).run();
}

void rehearse_search(const Transformer<float>& model, const Packed& sources, const SearchOptions& options,
                     Arena& arena) {
  const Arena::Scope scope(arena);
  BeamSearch(model, sources, options, arena).rehearse();
}

}  // namespace qkv
