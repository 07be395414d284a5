#include "analysis/attention_flow.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

#include "analysis/mixing.h"
#include "core/fail.h"

namespace qkv {
namespace {

using Link = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>::edge_descriptor;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    boost::property<boost::edge_capacity_t, int64_t,
                                                    boost::property<boost::edge_residual_capacity_t, int64_t,
                                                                    boost::property<boost::edge_reverse_t, Link>>>>;

// A directed graph with capacities. They are integers, so that a flow is exact and found in finitely many steps.
class FlowNetwork {
 public:
  explicit FlowNetwork(size_t nodes) : graph_(nodes) {}

  void add_edge(size_t from, size_t to, double capacity) {
    const int64_t units = std::llround(std::ldexp(capacity, kBits));
    if (units == 0) return;
    const Link forward = boost::add_edge(from, to, {units}, graph_).first;
    const Link back = boost::add_edge(to, from, {0}, graph_).first;
    const auto reverse = boost::get(boost::edge_reverse, graph_);
    reverse[forward] = back;
    reverse[back] = forward;
  }

  double max_flow(size_t from, size_t to) {
    return std::ldexp(static_cast<double>(boost::push_relabel_max_flow(graph_, from, to)), -kBits);
  }

 private:
  static constexpr int kBits = 40;
  Graph graph_;
};

// The nodes of one side of a model: its inputs and the states after each layer.
struct Side {
  size_t first = 0, tokens = 0;

  size_t node(size_t layer, size_t token) const { return first + layer * tokens + token; }
};

// Returns the flows from the states of a layer to the inputs of a side.
Shares flows(FlowNetwork& network, const Side& rows, size_t layer, const Side& columns) {
  Shares found = Shares::zeros(rows.tokens, columns.tokens);
  for (size_t i = 0; i < rows.tokens; i++)
    for (size_t j = 0; j < columns.tokens; j++)
      found.at(i, j) = network.max_flow(rows.node(layer, i), columns.node(0, j));
  return found;
}

void add_self_attention(FlowNetwork& network, const AttentionKind& kind, const Side& side, double factor) {
  for (size_t l = 0; l < kind.layers.size(); l++) {
    const Shares mix = with_residual(kind, l);
    for (size_t i = 0; i < mix.rows; i++)
      for (size_t j = 0; j < mix.columns; j++)
        network.add_edge(side.node(l + 1, i), side.node(l, j), factor * mix.at(i, j));
  }
}

void add_cross_attention(FlowNetwork& network, const AttentionKind& kind, const Side& target, const Side& source,
                         size_t source_layers) {
  for (size_t l = 0; l < kind.layers.size(); l++) {
    const Shares mean = mean_of_heads(kind, l);
    for (size_t i = 0; i < mean.rows; i++)
      for (size_t j = 0; j < mean.columns; j++)
        network.add_edge(target.node(l + 1, i), source.node(source_layers, j), mean.at(i, j) / 2);
  }
}

double sum_of_row(const Shares& shares, size_t row) {
  double sum = 0;
  for (size_t j = 0; j < shares.columns; j++) sum += shares.at(row, j);
  return sum;
}

void divide_row(Shares& shares, size_t row, double divisor) {
  for (size_t j = 0; j < shares.columns; j++) shares.at(row, j) /= divisor;
}

void add_flows(FlowNetwork& network, const AttentionKind& kind, const Side& side, AttentionKind& to) {
  for (size_t l = 1; l <= kind.layers.size(); l++) {
    Shares found = flows(network, side, l, side);
    for (size_t i = 0; i < found.rows; i++) divide_row(found, i, sum_of_row(found, i));
    add_layer(to, found);
  }
}

void add_flows(FlowNetwork& network, const Side& target, const Side& source, size_t layers, AttentionKind& to_self,
               AttentionKind& to_cross) {
  for (size_t l = 1; l <= layers; l++) {
    Shares self = flows(network, target, l, target), cross = flows(network, target, l, source);
    for (size_t i = 0; i < self.rows; i++) {
      const double sum = sum_of_row(self, i) + sum_of_row(cross, i);
      divide_row(self, i, sum);
      divide_row(cross, i, sum);
    }
    add_layer(to_self, self);
    add_layer(to_cross, cross);
  }
}

void check_size(const AttentionMap& map) {
  int64_t count = 0;
  for (const AttentionKind& kind : map.kinds)
    count += std::ssize(kind.layers) * std::ssize(kind.rows) * std::ssize(kind.columns);
  if (count > kMostFlows)
    fail("flow: {} pairs of a token and an input over all layers, more than {}: shorten the text", count, kMostFlows);
}

}  // namespace

AttentionMap attention_flow(const AttentionMap& map) {
  check_size(map);
  AttentionMap found = without_layers(map, AttentionMethod::flow);
  const auto to = kinds_by_name(found);
  const auto alone = [&](const AttentionKind& kind, AttentionKind& result) {
    const Side side{0, kind.rows.size()};
    FlowNetwork network((kind.layers.size() + 1) * side.tokens);
    add_self_attention(network, kind, side, 1);
    add_flows(network, kind, side, result);
  };
  const auto [encoder, decoder, cross] = kinds_by_name(map);
  if (encoder) alone(*encoder, *to.encoder);
  if (decoder && !cross) alone(*decoder, *to.decoder);
  if (!cross) return found;
  const size_t layers = encoder->layers.size();
  const Side source{0, encoder->rows.size()}, target{(layers + 1) * source.tokens, decoder->rows.size()};
  FlowNetwork network(target.node(decoder->layers.size() + 1, 0));
  add_self_attention(network, *encoder, source, 1);
  add_self_attention(network, *decoder, target, 0.5);
  add_cross_attention(network, *cross, target, source, layers);
  add_flows(network, target, source, decoder->layers.size(), *to.decoder, *to.cross);
  return found;
}

}  // namespace qkv
