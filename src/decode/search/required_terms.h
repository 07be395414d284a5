// Terms that a translation must contain, such as those of a glossary: which of them a hypothesis has, and which tokens
// lead to the others. The search keeps hypotheses of each number of terms: Post and Vilar, "Fast Lexically Constrained
// Decoding with Dynamic Beam Allocation for Neural Machine Translation" (2018). docs/decoding.md describes it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/to_size.h"

namespace qkv {

// A term: the tokens of each of its spellings, of which one must occur.
using TermSpellings = std::vector<std::vector<int32_t>>;

class RequiredTerms {
 public:
  static constexpr size_t kMost = 32;  // terms of a sentence

  // The terms that a hypothesis has.
  struct Progress {
    uint32_t found = 0;   // a bit for each term
    int32_t node = 0;     // of the tree of spellings: the beginning of a spelling that the last tokens are
    int32_t newest = -1;  // term that the last token has completed; the node is then where its spelling ends

    bool operator==(const Progress&) const = default;
  };

  // continues_word: whether a token continues the word before it, so that a term that the word begins with is not
  // found; null: no token does. Throws Error for more than kMost terms, a term without spellings, and an empty
  // spelling.
  explicit RequiredTerms(std::vector<TermSpellings> terms, std::function<bool(int32_t)> continues_word = nullptr);

  size_t size() const { return count_; }

  // Returns the progress after one more token. A token belongs to one occurrence of a term, and an occurrence to the
  // first term that is not found before. A word that only begins with a term may still be a longer spelling of it.
  Progress after(Progress before, int32_t token) const;

  // Calls visit once with each token that continues a spelling of a term that is not found yet; if the last tokens
  // begin none, with those that begin one.
  void visit_next(const Progress& progress, const std::function<void(int32_t)>& visit) const;

  bool has_all(const Progress& progress) const { return to_size(std::popcount(progress.found)) == count_; }
  // Returns the places of the terms that are not found.
  std::vector<int32_t> missing(const Progress& progress) const;

  // Returns the group of hypotheses that are compared with each other: those with as many terms, and as many tokens of
  // one that is begun. Without the latter, a term of several unlikely tokens would always lose to a new beginning. It
  // rises with the progress.
  size_t group(const Progress& progress) const;

 private:
  struct Node {
    std::vector<std::pair<int32_t, int32_t>> next = {};  // tokens, in their order, and nodes
    size_t depth = 0;                                    // tokens from the root
    int32_t shorter = 0;   // node of the longest beginning of a spelling that ends here, shorter than this one
    uint32_t ending = 0;   // terms with a spelling that ends here, or at a shorter node
    uint32_t passing = 0;  // terms with a spelling that continues from here
  };

  void add(uint32_t term, std::span<const int32_t> spelling);
  void link();
  int32_t child(int32_t node, int32_t token) const;
  // Returns the node of a term that is begun; the root if there is none.
  const Node& begun(const Progress& progress) const;

  size_t count_ = 0;
  std::function<bool(int32_t)> continues_word_;
  std::vector<Node> nodes_ = {Node{}};
  size_t longest_ = 0;  // tokens of a spelling
};

// Returns the places of at most `width` candidates, in their order. Each group that has candidates gets an equal share,
// the later groups what does not divide evenly, and the best others fill what is left. groups: of each candidate, best
// first.
std::vector<size_t> share_among_groups(std::span<const size_t> groups, size_t width);

}  // namespace qkv
