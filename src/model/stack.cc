#include "model/stack.h"

#include <numeric>

#include "core/to_size.h"
#include "model/recompute.h"
#include "ops/dropout.h"
#include "ops/rows.h"

namespace qkv {
template <class Real>
Layer<Real>::Layer(ParameterList<Real>& list, const std::string& name, int64_t index, const ModelConfig& config,
                   StackKind kind, DropoutSites& sites, const PositionTables<Real>* positions,
                   const RelativeBias<Real>* relative)
    : causal_(kind.causal),
      keys_of_x_(config.norm.position == NormPosition::query),
      sublayers_(config.sublayers),
      self_attention_(list, name + ".self_attention", config,
                      config.layer_kind(index) == 'l' ? AttentionScope::local : AttentionScope::global, sites,
                      positions ? positions->of_layer(config.layer_kind(index)) : LayerPositions<Real>(), relative),
      self_attention_residual_(list, name + ".self_attention", config, sites, config.norm.first || index > 0),
      cross_(kind.cross ? std::optional<Cross>({{list, name + ".cross_attention", config, AttentionScope::cross, sites},
                                                {list, name + ".cross_attention", config, sites}})
                        : std::nullopt),
      feed_forward_(list, name + ".feed_forward", config, sites),
      feed_forward_residual_(list, name + ".feed_forward", config, sites, !shares_norm()) {}

template <class Real>
template <class Attend>
Matrix<Real> Layer<Real>::forward_parallel(Matrix<const Real> x, Context& c, Saved& s, Attend&& attend) const {
  Probe::Part part(c.probe, "self-attention");
  const Matrix<const Real> n = self_attention_residual_.input(x, c, s.self_attention_residual);
  const Matrix<const Real> m = shares_norm() ? n : feed_forward_residual_.input(x, c, s.feed_forward_residual);
  const Matrix<Real> y = self_attention_residual_.add(x, attend(n), c);
  part.rename("feed-forward");
  return feed_forward_residual_.add(y, feed_forward_.forward(m, c, s.feed_forward), c);
}

template <class Real>
void Layer<Real>::backward_parallel(Matrix<Real> gradient, const VisibleKeys<Real>& self, Context& c,
                                    const Saved& s) const {
  const Arena::Scope scope(c.arena);
  Probe::Part part(c.probe, "feed-forward");
  const Matrix<Real> dm = c.arena.matrix<Real>(gradient.rows, gradient.cols);
  feed_forward_residual_.add_backward(gradient, c, dm);
  feed_forward_.backward(dm, dm, false, c, s.feed_forward);
  part.rename("self-attention");
  const Matrix<Real> dn = c.arena.matrix<Real>(gradient.rows, gradient.cols);
  self_attention_residual_.add_backward(gradient, c, dn);
  self_attention_.backward(dn, dn, false, {}, self, causal_, c, s.self_attention);
  if (shares_norm())
    add_dropout<Real>(dn, dm, Dropout{}, dn);
  else
    feed_forward_residual_.input_backward(dm, c, s.feed_forward_residual);
  self_attention_residual_.input_backward(dn, c, s.self_attention_residual);
  if (!shares_norm()) add_dropout<Real>(gradient, dm, Dropout{}, gradient);
  add_dropout<Real>(gradient, dn, Dropout{}, gradient);
}

template <class Real>
Matrix<Real> Layer<Real>::forward(Matrix<const Real> x, Matrix<const Real> memory, const VisibleKeys<Real>& self,
                                  const VisibleKeys<Real>& cross, Context& c, Saved& s) const {
  if (is_parallel())
    return forward_parallel(x, c, s, [&](Matrix<const Real> n) {
      return self_attention_.forward(n, n, self, causal_, c, s.self_attention);
    });
  Probe::Part part(c.probe, "self-attention");
  Matrix<Real> y = self_attention_residual_.forward(x, c, s.self_attention_residual, [&](Matrix<const Real> h) {
    return self_attention_.forward(h, keys_input(x, h), self, causal_, c, s.self_attention);
  });
  part.rename("cross-attention");
  if (cross_)
    y = cross_->residual.forward(y, c, s.cross_attention_residual, [&](Matrix<const Real> h) {
      return cross_->attention.forward(h, memory, cross, Causal::none, c, s.cross_attention);
    });
  part.rename("feed-forward");
  return feed_forward_residual_.forward(
      y, c, s.feed_forward_residual, [&](Matrix<const Real> h) { return feed_forward_.forward(h, c, s.feed_forward); });
}

template <class Real>
void Layer<Real>::backward(Matrix<Real> gradient, Matrix<Real> dmemory, const VisibleKeys<Real>& self,
                           const VisibleKeys<Real>& cross, Context& c, const Saved& s) const {
  if (is_parallel()) return backward_parallel(gradient, self, c, s);
  Probe::Part part(c.probe, "feed-forward");
  feed_forward_residual_.backward(gradient, c, s.feed_forward_residual,
                                  [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
                                    feed_forward_.backward(d, dx, accumulate, c, s.feed_forward);
                                  });
  part.rename("cross-attention");
  if (cross_)
    cross_->residual.backward(
        gradient, c, s.cross_attention_residual, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
          cross_->attention.backward(d, dx, accumulate, dmemory, cross, Causal::none, c, s.cross_attention);
        });
  part.rename("self-attention");
  const Arena::Scope scope(c.arena);
  const Matrix<Real> dkeys = keys_of_x_ ? zeros<Real>(c.arena, gradient.rows, gradient.cols) : Matrix<Real>{};
  self_attention_residual_.backward(
      gradient, c, s.self_attention_residual, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
        self_attention_.backward(d, dx, accumulate, dkeys, self, causal_, c, s.self_attention);
      });
  if (keys_of_x_) add_dropout<Real>(gradient, dkeys, Dropout{}, gradient);
}

template <class Real>
Matrix<Real> Layer<Real>::last(Matrix<const Real> x, const Sequences& self, Context& c) const {
  const int64_t S = self.count;
  const Matrix<Real> rows = c.arena.matrix<Real>(S, x.cols);
  const std::span<int32_t> ends = {c.arena.take<int32_t>(S + 1), to_size(S + 1)};
  std::iota(ends.begin(), ends.end(), 0);
  const std::span<int32_t> last = {c.arena.take<int32_t>(S), to_size(S)};
  for (int64_t s = 0; s < S; s++) last[to_size(s)] = self.q_end[s] - 1;
  gather_rows<Real>(x, last, rows);
  const Sequences one_query = {S, ends.data(), ends.data() + 1, self.k_begin, self.k_end};

  Saved saved;
  const Matrix<const Real> z = keys_of_x_ ? x : self_attention_residual_.input(x, c, saved.cross_attention_residual);
  const auto attend = [&](Matrix<const Real> h) {
    return self_attention_.forward(h, z, one_query, Causal::none, c, saved.self_attention);
  };
  if (is_parallel()) return forward_parallel(rows, c, saved, attend);
  const Matrix<Real> y = self_attention_residual_.forward(rows, c, saved.self_attention_residual, attend);
  return feed_forward_residual_.forward(y, c, saved.feed_forward_residual, [&](Matrix<const Real> h) {
    return feed_forward_.forward(h, c, saved.feed_forward);
  });
}

template <class Real>
Matrix<Real> Layer<Real>::step(Matrix<const Real> x, const CachedKeys& self, const CachedKeys& cross,
                               const Cache& cache, std::span<const int32_t> new_rows, Context& c) const {
  const auto attend = [&](Matrix<const Real> h) {
    return self_attention_.step(h, keys_input(x, h), cache.self, new_rows, self, c);
  };
  if (is_parallel()) {
    Saved s;
    return forward_parallel(x, c, s, attend);
  }
  // Each sublayer reuses the memory of the one before it, which is in the cache.
  const auto sublayer = [&](Matrix<const Real> in, const Residual<Real>& residual, auto&& f) {
    return result_only<Real>(in, c, [&] {
      typename Residual<Real>::Saved s;
      return residual.forward(in, c, s, f);
    });
  };
  Matrix<Real> y = sublayer(x, self_attention_residual_, attend);
  if (cross_)
    y = sublayer(y, cross_->residual,
                 [&](Matrix<const Real> h) { return cross_->attention.attend(h, cache.cross, cross, c); });
  return sublayer(y, feed_forward_residual_, [&](Matrix<const Real> h) {
    typename FeedForward<Real>::Saved s;
    return feed_forward_.forward(h, c, s);
  });
}

template <class Real>
Stack<Real>::Stack(ParameterList<Real>& list, const std::string& name, int64_t layers, const ModelConfig& config,
                   StackKind kind, DropoutSites& sites, const PositionTables<Real>* positions)
    : first_(std::ssize(list.all())) {
  if (config.attention.relative_buckets > 0)
    relative_.emplace(list, name + ".relative_bias", config, kind.causal != Causal::none);
  for (int64_t i = 0; i < layers; i++) {
    list.tie_next(config.shared_layers && i > 0);
    const int64_t declared = config.shared_layers ? 0 : i;
    layers_.emplace_back(list, name + ".layers." + std::to_string(declared), i, config, kind, sites, positions,
                         relative_ ? &*relative_ : nullptr);
    ends_.push_back(std::ssize(list.all()));
  }
  list.tie_next(false);
  if (config.norm.final) norm_.emplace(list, name + ".norm", config.d_model, config);
  end_ = std::ssize(list.all());
}

template <class Real>
Matrix<Real> Stack<Real>::forward_from(int64_t first, Matrix<const Real> x, Matrix<const Real> memory,
                                       const VisibleKeys<Real>& self, const VisibleKeys<Real>& cross, Context& c,
                                       Saved& s) const {
  s.layers = c.arena.objects<typename Layer<Real>::Saved>(layers_.size());
  s.inputs = c.arena.objects<Matrix<const Real>>(layers_.size());
  s.memory = memory;
  Matrix<Real> y;
  for (size_t i = to_size(first); i < layers_.size(); i++) {
    s.inputs[i] = x;
    c.use(ends_[i]);
    const Probe::Part part(c.probe, "layer", static_cast<int64_t>(i));
    const auto layer = [&] { return layers_[i].forward(x, memory, self, cross, c, s.layers[i]); };
    x = y = c.recompute ? result_only<Real>(x, c, layer) : layer();
    c.probed("state", y);
  }
  c.use(end_);
  return norm_ ? norm_->forward(y, c, s.norm) : y;
}

template <class Real>
Matrix<const Real> Stack<Real>::final_norm(Matrix<const Real> x, Context& c) const {
  typename Norm<Real>::Saved s;
  return norm_ ? Matrix<const Real>(norm_->forward(x, c, s)) : x;
}

template <class Real>
void Stack<Real>::backward(Matrix<Real> gradient, Matrix<Real> dmemory, const VisibleKeys<Real>& self,
                           const VisibleKeys<Real>& cross, Context& c, const Saved& s) const {
  if (norm_) norm_->backward(gradient, c, s.norm);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Arena::Scope scope(c.arena);
    const Probe::Part part(c.probe, "layer", static_cast<int64_t>(i));
    if (c.recompute) layers_[i].forward(s.inputs[i], s.memory, self, cross, c, s.layers[i]);
    layers_[i].backward(gradient, dmemory, self, cross, c, s.layers[i]);
    c.complete(i > 0 ? ends_[i - 1] : first_);
  }
}

template <class Real>
Matrix<Real> Stack<Real>::last(Matrix<Real> x, const Sequences& self, Context& c) const {
  for (size_t i = 0; i + 1 < layers_.size(); i++)
    x = result_only<Real>(x, c, [&] {
      typename Layer<Real>::Saved s;
      return layers_[i].forward(x, {}, self, {}, c, s);
    });
  const Matrix<Real> y = layers_.back().last(x, self, c);
  typename Norm<Real>::Saved s;
  return norm_ ? norm_->forward(y, c, s) : y;
}

template <class Real>
Matrix<Real> Stack<Real>::step(Matrix<Real> x, const CachedKeys& self, const CachedKeys& cross,
                               const std::vector<typename Layer<Real>::Cache>& caches,
                               std::span<const int32_t> new_rows, Context& c) const {
  for (size_t i = 0; i < layers_.size(); i++)
    x = result_only<Real>(x, c, [&] { return layers_[i].step(x, self, cross, caches[i], new_rows, c); });
  typename Norm<Real>::Saved s;
  return norm_ ? norm_->forward(x, c, s) : x;
}

QKV_FOR_ELEMENTS(template class Layer);
QKV_FOR_ELEMENTS(template class Stack);

}  // namespace qkv
