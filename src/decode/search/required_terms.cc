#include "decode/search/required_terms.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int32_t kRoot = 0, kNoNode = -1;

constexpr uint32_t bit_of(size_t term) { return uint32_t{1} << term; }

}  // namespace

RequiredTerms::RequiredTerms(std::vector<TermSpellings> terms, std::function<bool(int32_t)> continues_word)
    : count_(terms.size()), continues_word_(std::move(continues_word)) {
  if (count_ > kMost) fail("a sentence must have at most {} required terms (has {})", kMost, count_);
  for (size_t term = 0; term < count_; term++) {
    if (terms[term].empty()) fail("required term {} has no spelling", term + 1);
    for (const std::vector<int32_t>& spelling : terms[term]) {
      if (spelling.empty()) fail("required term {} has an empty spelling", term + 1);
      add(bit_of(term), spelling);
    }
  }
  link();
}

void RequiredTerms::add(uint32_t term, std::span<const int32_t> spelling) {
  int32_t node = kRoot;
  for (const int32_t token : spelling) {
    nodes_[to_size(node)].passing |= term;
    int32_t next = child(node, token);
    if (next == kNoNode) {
      next = static_cast<int32_t>(nodes_.size());
      auto& tokens = nodes_[to_size(node)].next;
      tokens.insert(std::ranges::lower_bound(tokens, std::pair(token, next)), {token, next});
      nodes_.push_back({.depth = nodes_[to_size(node)].depth + 1});
      longest_ = std::max(longest_, nodes_.back().depth);
    }
    node = next;
  }
  nodes_[to_size(node)].ending |= term;
}

// Sets Node::shorter as Aho and Corasick do: "Efficient String Matching" (1975).
void RequiredTerms::link() {
  std::vector<int32_t> queue = {kRoot};
  for (size_t i = 0; i < queue.size(); i++) {
    const int32_t node = queue[i];
    for (const auto& [token, next] : nodes_[to_size(node)].next) {
      int32_t shorter = kRoot;
      for (int32_t at = node; at != kRoot && shorter == kRoot;) {
        at = nodes_[to_size(at)].shorter;
        shorter = std::max(child(at, token), kRoot);
      }
      nodes_[to_size(next)].shorter = shorter;
      nodes_[to_size(next)].ending |= nodes_[to_size(shorter)].ending;
      queue.push_back(next);
    }
  }
}

int32_t RequiredTerms::child(int32_t node, int32_t token) const {
  const auto& next = nodes_[to_size(node)].next;
  const auto found = std::ranges::lower_bound(next, token, {}, &std::pair<int32_t, int32_t>::first);
  return found != next.end() && found->first == token ? found->second : kNoNode;
}

RequiredTerms::Progress RequiredTerms::after(Progress progress, int32_t token) const {
  if (progress.newest >= 0) {
    if (continues_word_ && continues_word_(token))
      progress.found &= ~bit_of(to_size(progress.newest));
    else
      progress.node = kRoot;
  }
  progress.newest = -1;
  int32_t node = child(progress.node, token);
  while (node == kNoNode && progress.node != kRoot) {
    progress.node = nodes_[to_size(progress.node)].shorter;
    node = child(progress.node, token);
  }
  progress.node = std::max(node, kRoot);
  const uint32_t completed = nodes_[to_size(progress.node)].ending & ~progress.found;
  if (completed == 0) return progress;
  progress.newest = std::countr_zero(completed);
  progress.found |= bit_of(to_size(progress.newest));
  return progress;
}

const RequiredTerms::Node& RequiredTerms::begun(const Progress& progress) const {
  const Node& node = nodes_[to_size(progress.node)];
  return progress.newest < 0 && (node.passing & ~progress.found) != 0 ? node : nodes_.front();
}

void RequiredTerms::visit_next(const Progress& progress, const std::function<void(int32_t)>& visit) const {
  for (const auto& [token, next] : begun(progress).next) {
    const Node& after_it = nodes_[to_size(next)];
    if (((after_it.passing | after_it.ending) & ~progress.found) != 0) visit(token);
  }
}

std::vector<int32_t> RequiredTerms::missing(const Progress& progress) const {
  std::vector<int32_t> terms;
  for (size_t term = 0; term < count_; term++)
    if ((progress.found & bit_of(term)) == 0) terms.push_back(static_cast<int32_t>(term));
  return terms;
}

size_t RequiredTerms::group(const Progress& progress) const {
  return to_size(std::popcount(progress.found)) * longest_ + begun(progress).depth;
}

std::vector<size_t> share_among_groups(std::span<const size_t> groups, size_t width) {
  std::map<size_t, size_t> room;
  for (const size_t group : groups) room[group] = 0;
  size_t before = room.size();  // groups up to this one
  for (auto group = room.rbegin(); group != room.rend(); group++, before--)
    group->second = width / room.size() + (room.size() - before < width % room.size() ? 1 : 0);
  std::vector<size_t> chosen, others;
  for (size_t i = 0; i < groups.size(); i++) {
    size_t& left = room[groups[i]];
    (left > 0 ? chosen : others).push_back(i);
    if (left > 0) left--;
  }
  for (size_t i = 0; i < others.size() && chosen.size() < width; i++) chosen.push_back(others[i]);
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace qkv
