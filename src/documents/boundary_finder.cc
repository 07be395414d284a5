#include "documents/boundary_finder.h"

#include <algorithm>

namespace qkv {

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

}  // namespace qkv
