// Beam search, greedy search and sampling for sentences, with cached keys and values. Sentences may join and leave
// between steps. docs/decoding.md describes the algorithm.
#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "decode/search/sentence_search.h"

namespace qkv {

// Throws Error, naming the option, if an option is out of range. V: size of the target vocabulary.
void check(const SearchOptions& options, int64_t V);

// Returns the maximum number of tokens of a hypothesis for a source of S tokens.
int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length);

int64_t max_tokens(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Returns the number of hypotheses of a sentence that may be live at once.
inline int64_t live_hypotheses(const SearchOptions& options) {
  return options.sampling ? options.n_best : options.beam;
}

// Returns the most rows of the cache that a sentence needs.
CacheRows rows_needed(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Throws Error for an option out of range, an id outside the vocabulary, and a prefix that is too long.
void check(const Ensemble& models, const SearchTask& task);

// A number of sentences that are searched together. The result of a sentence does not depend on the others.
class Search {
 public:
  struct Result {
    uint64_t key = 0;
    // All finished hypotheses, best first: about `beam` for beam search, n_best for sampling, none if the model's
    // output is NaN. Scores exclude the coverage penalty, which only keeps the search from stopping early.
    std::vector<Decoded> found;
  };

  // Takes memory for `rows` from `memory`, which all sentences at once never exceed, and that of steps from `scratch`.
  // They may be one arena. Models and arenas must outlive the search.
  Search(const Ensemble& models, const CacheRows& rows, Arena& memory, Arena& scratch);
  ~Search();

  // Encodes sentences, which take part from the next step on. Throws Error as check does; then none is added.
  void add(std::span<const SearchTask> tasks);
  // Ends a sentence without a result. Returns whether there is one with this key.
  bool remove(uint64_t key);
  // A paused sentence keeps its hypotheses and takes no step. Returns whether there is one with this key.
  bool pause(uint64_t key, bool paused);

  bool has_room(int64_t source_tokens) const { return cache_.has_room(source_tokens); }
  bool can_step() const;  // returns whether a sentence is not paused
  // Extends all hypotheses by a token. Returns the sentences that are finished, in the order in which they were added.
  std::vector<Result> step();
  void trim(Clock::time_point now) { cache_.trim(now); }

  // Takes the most memory that a step can need, by running one with every hypothesis live and of maximum length. The
  // computed values are meaningless.
  void dry_run();

 private:
  struct Group;

  static std::vector<Group> groups_of(const std::vector<SentenceSearch*>& all);
  // Computes the next tokens of all hypotheses of a step, in the groups.
  std::vector<Group> next_of_all(const std::vector<SentenceSearch*>& all);

  const Ensemble& models_;
  Context context_;
  KeyValueCache cache_;
  std::vector<std::unique_ptr<SentenceSearch>> sentences_;  // in the order in which they were added
  std::vector<int32_t> ids_;
};

// Searches sentences to their end. Returns the results of Search for each input.
std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// Allocates from the arena the most that search can need.
void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena);

}  // namespace qkv
