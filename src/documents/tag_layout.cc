#include "documents/tag_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "text/alignment/aligned_units.h"

namespace qkv {
namespace {

// Finds the place of a translation that best separates the words before a place of the source from those after it.
class BoundaryFinder {
 public:
  explicit BoundaryFinder(const AlignedUnits& aligned);

  // Returns b such that the units on the wrong side have the least weight: those before b that are aligned with a token
  // from `token` on, and those from b on that are aligned with one before; the first such b. Calls have rising tokens.
  // The results rise as well. Takes time n log n for all of n units.
  size_t find(size_t token);

 private:
  // The sums of the weights of the first units of a range: all of them, and the least sum with its number of units.
  struct Node {
    int64_t sum = 0, least = 0;
    size_t count = 0;
  };

  void set(size_t unit, int64_t weight);
  void update(size_t node, size_t units);

  const AlignedUnits& aligned_;
  std::vector<std::vector<size_t>> units_of_;  // of each source token
  size_t width_ = 1;                           // leaves of the tree, a power of two
  std::vector<Node> nodes_;                    // the children of node i are 2i and 2i + 1
  size_t done_ = 0;                            // tokens before
};

BoundaryFinder::BoundaryFinder(const AlignedUnits& aligned) : aligned_(aligned), units_of_(aligned.source.size()) {
  while (width_ < aligned.units.size()) width_ *= 2;
  nodes_.resize(2 * width_);
  for (size_t u = 0; u < aligned.units.size(); u++) {
    const TargetUnit& unit = aligned.units[u];
    if (unit.source == TargetUnit::kNone) continue;
    units_of_[unit.source].push_back(u);
    set(u, static_cast<int64_t>(unit.weight));
  }
}

size_t BoundaryFinder::find(size_t token) {
  for (; done_ < token; done_++)
    for (const size_t u : units_of_[done_]) set(u, -static_cast<int64_t>(aligned_.units[u].weight));
  return nodes_[1].count;
}

void BoundaryFinder::set(size_t unit, int64_t weight) {
  size_t node = width_ + unit;
  nodes_[node] = {weight, weight < 0 ? weight : 0, weight < 0 ? 1u : 0u};
  for (size_t units = 1; node > 1; units *= 2) update(node /= 2, units);
}

// units: leaves of each child.
void BoundaryFinder::update(size_t node, size_t units) {
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  const int64_t least = left.sum + right.least;
  nodes_[node] = {left.sum + right.sum, std::min(left.least, least), left.count};
  if (least < left.least) nodes_[node].count = units + right.count;
}

constexpr size_t kDeepest = 64;  // elements within each other

// An element, a single tag, or the whole text. Numbered in the order of the source, so the descendants of a node are
// the next ones.
struct TagNode {
  size_t tag = InlineTag::kNone;           // that opens the element
  bool is_element = true;                  // it encloses text
  size_t next = 0;                         // first node that is not a descendant
  size_t first_token = 0, last_token = 0;  // source tokens first … last − 1
  size_t begin = 0, end = 0;               // units of the translation
};

struct UnitRange {
  size_t begin, end;
};

// A child element, and the units of its parent that are aligned with its words.
struct ChildUnits {
  size_t node;
  std::vector<size_t> units = {};
  size_t weight = 0;
};

class TagPlacer {
 public:
  TagPlacer(const TextPart& source, const AlignedUnits& aligned)
      : tags_(source.tags),
        keeps_order_(source.keeps_tag_order),
        aligned_(aligned),
        units_(aligned.units),
        is_taken_(aligned.units.size()) {
    BoundaryFinder finder(aligned);
    size_t token = 0;  // the first one of which at least a half stands behind the tag
    for (const InlineTag& tag : tags_) {
      while (token < aligned.source.size() && aligned.source[token].begin + aligned.source[token].end < 2 * tag.at)
        token++;
      tokens_.push_back(token);
      boundaries_.push_back(after_attached(finder.find(token)));
    }
  }

  std::vector<PlacedTag> place() {
    if (!keeps_order_ && build_nodes())
      place_children(0);
    else
      for (size_t i = 0; i < tags_.size(); i++) put(i, boundaries_[i]);
    return std::move(placed_);
  }

 private:
  // Marks without an alignment stay next to the word that they touch.
  size_t after_attached(size_t unit) const {
    while (unit > 0 && unit < units_.size() && units_[unit].source == TargetUnit::kNone &&
           units_[unit].begin == units_[unit - 1].end)
      unit++;
    return unit;
  }

  // Returns false if the tags do not make a tree of limited depth.
  bool build_nodes() {
    nodes_.push_back({.last_token = aligned_.source.size(), .end = units_.size()});
    std::vector<size_t> open = {0};
    leaves_.resize(aligned_.source.size());
    size_t token = 0;
    const auto reach = [&](size_t end) {
      while (token < end) leaves_[token++] = open.back();
    };
    for (size_t i = 0; i < tags_.size(); i++) {
      reach(tokens_[i]);
      const bool is_single = tags_[i].kind == InlineTag::Kind::single;
      if (!is_single && tags_[i].partner == InlineTag::kNone) return false;
      if (tags_[i].kind == InlineTag::Kind::close) {
        nodes_[open.back()].next = nodes_.size();
        nodes_[open.back()].last_token = tokens_[i];
        open.pop_back();
        continue;
      }
      if (!is_single) open.push_back(nodes_.size());
      if (open.size() > kDeepest + 1) return false;
      nodes_.push_back({.tag = i, .is_element = !is_single, .next = nodes_.size() + 1, .first_token = tokens_[i]});
    }
    reach(leaves_.size());
    nodes_[0].next = nodes_.size();
    return true;
  }

  void put(size_t tag, size_t unit) {
    if (!placed_.empty()) unit = std::max(unit, placed_.back().unit);
    placed_.push_back({tag, unit});
  }

  // Gives the children of a node their units, and places them. Not deeper than kDeepest.
  void place_children(size_t parent) {
    std::vector<size_t> children;
    for (size_t child = parent + 1; child < nodes_[parent].next; child = nodes_[child].next) children.push_back(child);
    if (children.empty()) return;
    give_units(nodes_[parent], children);
    std::ranges::stable_sort(children, {}, [&](size_t child) { return nodes_[child].begin; });
    for (const size_t child : children) {
      const TagNode& node = nodes_[child];
      put(node.tag, node.begin);
      if (!node.is_element) continue;
      place_children(child);
      put(tags_[node.tag].partner, node.end);
    }
  }

  void give_units(const TagNode& parent, const std::vector<size_t>& children) {
    std::vector<size_t> rest;                            // children without units
    std::vector<std::pair<size_t, size_t>> ranges = {};  // first unit and node of each child that has units
    for (const ChildUnits& child : units_of_children(parent, children)) {
      TagNode& node = nodes_[child.node];
      const bool is_whole = node.is_element && node.first_token < node.last_token &&
                            node.first_token == parent.first_token && node.last_token == parent.last_token;
      const std::optional<UnitRange> range = is_whole ? UnitRange{parent.begin, parent.end} : best_range(child.units);
      if (!range) {
        rest.push_back(child.node);
        continue;
      }
      node.begin = range->begin, node.end = range->end;
      take(node, ranges, child.node);
    }
    std::ranges::sort(rest);
    for (const size_t child : rest)
      if (nodes_[child].is_element) take_free_unit(parent, child, ranges);
    std::ranges::sort(ranges);
    for (const size_t child : rest)
      if (nodes_[child].begin == nodes_[child].end) place_between(parent, child, ranges);
    std::fill(is_taken_.begin() + static_cast<int64_t>(parent.begin),
              is_taken_.begin() + static_cast<int64_t>(parent.end), false);
  }

  // Returns the children with the most aligned words first.
  std::vector<ChildUnits> units_of_children(const TagNode& parent, const std::vector<size_t>& children) const {
    std::vector<ChildUnits> all;
    all.reserve(children.size());
    for (const size_t child : children) all.push_back({child});
    for (size_t u = parent.begin; u < parent.end; u++) {
      if (units_[u].source == TargetUnit::kNone) continue;
      const size_t leaf = leaves_[units_[u].source];
      if (leaf < children.front() || leaf >= parent.next) continue;
      const auto behind = std::ranges::upper_bound(children, leaf);
      ChildUnits& child = all[static_cast<size_t>(behind - children.begin()) - 1];
      child.units.push_back(u);
      child.weight += units_[u].weight;
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &ChildUnits::weight);
    return all;
  }

  // Returns the range with the greatest weight of its own units less that of the others, without taken ones. own:
  // rising.
  std::optional<UnitRange> best_range(const std::vector<size_t>& own) const {
    std::optional<UnitRange> best;
    int64_t weight = 0, best_weight = 0;
    size_t begin = 0, last = 0;
    for (const size_t u : own) {
      if (is_taken_[u]) {
        weight = 0;
        continue;
      }
      for (size_t between = last + 1; weight > 0 && between < u; between++)
        weight = is_taken_[between] ? 0 : weight - cost(between);
      if (weight <= 0) weight = 0, begin = u;
      weight += static_cast<int64_t>(units_[u].weight);
      last = u;
      if (weight > best_weight) best_weight = weight, best = UnitRange{begin, u + 1};
    }
    return best;
  }

  int64_t cost(size_t unit) const {
    return units_[unit].source == TargetUnit::kNone ? 1 : static_cast<int64_t>(units_[unit].weight);
  }

  void take(const TagNode& node, std::vector<std::pair<size_t, size_t>>& ranges, size_t id) {
    std::fill(is_taken_.begin() + static_cast<int64_t>(node.begin), is_taken_.begin() + static_cast<int64_t>(node.end),
              true);
    ranges.emplace_back(node.begin, id);
  }

  void take_free_unit(const TagNode& parent, size_t child, std::vector<std::pair<size_t, size_t>>& ranges) {
    TagNode& node = nodes_[child];
    const size_t place = std::clamp(boundaries_[node.tag], parent.begin, parent.end);
    if (place < parent.end && !is_taken_[place])
      node.begin = place, node.end = place + 1;
    else if (place > parent.begin && !is_taken_[place - 1])
      node.begin = place - 1, node.end = place;
    if (node.begin < node.end) take(node, ranges, child);
  }

  // Puts a child without units next to the range that its place is in, on the same side as in the source.
  void place_between(const TagNode& parent, size_t child, const std::vector<std::pair<size_t, size_t>>& ranges) {
    size_t place = std::clamp(boundaries_[nodes_[child].tag], parent.begin, parent.end);
    const auto behind = std::ranges::lower_bound(ranges, std::pair<size_t, size_t>(place, 0));
    if (behind != ranges.begin()) {
      const size_t other = std::prev(behind)->second;
      if (place < nodes_[other].end) place = child < other ? nodes_[other].begin : nodes_[other].end;
    }
    nodes_[child].begin = nodes_[child].end = place;
  }

  const std::vector<InlineTag>& tags_;
  const bool keeps_order_;
  const AlignedUnits& aligned_;
  const std::vector<TargetUnit>& units_;
  std::vector<size_t> tokens_;      // source tokens before each tag
  std::vector<size_t> boundaries_;  // units before each tag, if no element is considered
  std::vector<TagNode> nodes_;
  std::vector<size_t> leaves_;  // the innermost element of each source token
  std::vector<bool> is_taken_;  // units that a child has
  std::vector<PlacedTag> placed_ = {};
};

}  // namespace

std::vector<PlacedTag> place_tags(const TextPart& source, const AlignedUnits& aligned) {
  return TagPlacer(source, aligned).place();
}

}  // namespace qkv
