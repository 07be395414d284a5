#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "model/api/body.h"
#include "model/api/check_matrix.h"
#include "model/api/parameter_names.h"
#include "ops/rows.h"
#include "qkv/layers.h"

namespace qkv::layers {
namespace {

constexpr uint64_t kFirstSeed = 1;

int64_t size_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

template <class Real>
void check_inputs(const Body<Real>& body, std::span<const Matrix<const Real>> inputs) {
  const std::vector<InputKind> kinds = body.inputs();
  const auto required = std::ranges::count(kinds, false, &InputKind::optional);
  if (std::ssize(inputs) < required || inputs.size() > kinds.size())
    fail("{}: expected {} inputs, found {}", body.name(),
         required == std::ssize(kinds) ? fmt::to_string(required) : fmt::format("{} to {}", required, kinds.size()),
         inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    check_matrix(body.name(), kinds[i].name, inputs[i]);
    if (inputs[i].cols != kinds[i].width)
      fail("{}: {} has width {}, expected {}", body.name(), kinds[i].name, inputs[i].cols, kinds[i].width);
  }
}

template <class Real>
void check_layouts(const Body<Real>& body, const std::vector<RowLayout>& layouts) {
  if (layouts[0].sequences() != layouts[1].sequences())
    fail("{}: {} sequences of queries, {} of keys: expected the same number", body.name(), layouts[0].sequences(),
         layouts[1].sequences());
  for (const RowLayout& layout : layouts)
    if (body.longest() > 0 && layout.longest() > body.longest())
      fail("{}: sequences must have at most {} tokens, the max_length (one has {})", body.name(), body.longest(),
           layout.longest());
}

void check_ids(const std::string& module, std::span<const int32_t> ids, int64_t vocabulary) {
  for (const int32_t id : ids)
    if (id < 0 || id >= vocabulary) fail("{}: ids must be from 0 to {} (found {})", module, vocabulary - 1, id);
}

}  // namespace

template <class Real>
struct Module<Real>::State {
  explicit State(std::unique_ptr<Body<Real>> b) : body(std::move(b)) {
    body->parameters.allocate();
    body->parameters.initialize(kFirstSeed);
  }

  // Frees the last pass.
  void begin(const Call<Real>& call, std::vector<RowLayout> rows) {
    backward_pass.reset();
    pass.reset();
    output = nullptr;
    pass.emplace(arena);
    layouts = std::move(rows);
    context.emplace(Context{arena});
    context->training = call.dropout_seed.has_value();
    context->seed = call.dropout_seed.value_or(0);
    packed = {};
    packed.causal = call.causal;
    packed.mask = call.mask, packed.memory_mask = call.memory_mask, packed.source_mask = call.source_mask;
  }

  // `rows`: the layout of the result.
  Matrix<const Real> run(const RowLayout& rows) {
    const Matrix<Real> y = body->forward(packed, *context);
    output = &rows, output_width = y.cols;
    return rows.unpack<Real>(y, arena);
  }

  void require_gradients() {
    if (body->parameters.gradients().empty()) body->parameters.allocate_gradients();
  }

  std::unique_ptr<Body<Real>> body;
  Arena arena;
  std::optional<Arena::Scope> pass, backward_pass;
  std::vector<RowLayout> layouts;  // of Call::rows and Call::memory_rows
  std::vector<int32_t> ids;
  PackedCall<Real> packed;
  std::optional<Context> context;
  const RowLayout* output = nullptr;  // null before a forward pass
  int64_t output_width = 0;
};

template <class Real>
Module<Real>::Module(std::unique_ptr<Body<Real>> body) : state_(std::make_unique<State>(std::move(body))) {}
template <class Real>
Module<Real>::Module(Module&&) noexcept = default;
template <class Real>
Module<Real>& Module<Real>::operator=(Module&&) noexcept = default;
template <class Real>
Module<Real>::~Module() = default;

template <class Real>
std::vector<NamedArray<Real>> Module<Real>::parameters(Names names) {
  return named_arrays(state_->body->parameters, names, false);
}

template <class Real>
std::vector<NamedArray<Real>> Module<Real>::gradients(Names names) {
  state_->require_gradients();
  return named_arrays(state_->body->parameters, names, true);
}

template <class Real>
void Module<Real>::load_state_dict(std::span<const NamedArray<const Real>> values) {
  std::map<std::string, NamedArray<Real>> own, torch;
  for (auto& array : parameters(Names::own)) own.emplace(array.name, array);
  for (auto& array : parameters(Names::torch)) torch.emplace(array.name, array);
  const std::string module = state_->body->name();
  const bool is_torch = std::ranges::any_of(values, [&](const auto& v) { return !own.contains(v.name); });
  std::map<std::string, NamedArray<Real>>& wanted = is_torch ? torch : own;
  std::set<std::string> seen;
  for (const auto& value : values) {
    const auto found = wanted.find(value.name);
    if (found == wanted.end()) fail("{}: no parameter is named {}", module, excerpt(value.name));
    if (!seen.insert(value.name).second) fail("{}: parameter {} occurs twice", module, value.name);
    if (found->second.shape != value.shape)
      fail("{}: parameter {} has shape [{}], expected [{}]", module, value.name, fmt::join(value.shape, ", "),
           fmt::join(found->second.shape, ", "));
    if (!value.data) fail("{}: parameter {} must not be null", module, value.name);
  }
  for (const auto& [name, array] : wanted)
    if (!seen.contains(name)) fail("{}: parameter {} is missing", module, name);
  for (const auto& value : values) std::copy_n(value.data, size_of(value.shape), wanted.at(value.name).data);
}

template <class Real>
void Module<Real>::initialize(uint64_t seed) {
  state_->body->parameters.initialize(seed);
}

template <class Real>
void Module<Real>::clear_gradients() {
  std::ranges::fill(state_->body->parameters.gradients(), Real(0));
}

template <class Real>
Matrix<const Real> Module<Real>::forward(std::span<const Matrix<const Real>> inputs, const Call<Real>& call) {
  State& s = *state_;
  check_inputs(*s.body, inputs);
  const std::vector<InputKind> kinds = s.body->inputs();
  const auto rows_of = [&](bool memory) {
    for (size_t i = 0; i < inputs.size(); i++)
      if (kinds[i].is_memory == memory) return inputs[i].rows;
    return int64_t{-1};
  };
  std::vector<RowLayout> layouts;
  layouts.emplace_back(call.rows, rows_of(false), s.body->name());
  if (rows_of(true) < 0)
    layouts.push_back(layouts.front());
  else
    layouts.emplace_back(call.memory_rows, rows_of(true), s.body->name());
  check_layouts(*s.body, layouts);
  for (size_t i = 0; i < inputs.size(); i++)
    if (const int64_t rows = layouts[kinds[i].is_memory].given; inputs[i].rows != rows)
      fail("{}: {} has {} rows, expected {}", s.body->name(), kinds[i].name, inputs[i].rows, rows);

  s.begin(call, std::move(layouts));
  for (size_t i = 0; i < inputs.size(); i++) {
    const RowLayout& layout = s.layouts[kinds[i].is_memory];
    s.packed.inputs.push_back(layout.pack<Real>(inputs[i], s.arena));
    s.packed.layouts.push_back(&layout);
  }
  return s.run(*s.packed.layouts[s.body->output_rows()]);
}

template <class Real>
Matrix<const Real> Module<Real>::forward_ids(std::span<const int32_t> ids, const Call<Real>& call) {
  State& s = *state_;
  check_ids(s.body->name(), ids, s.body->vocabulary());
  std::vector<RowLayout> layouts(2, RowLayout(call.rows, std::ssize(ids), s.body->name()));
  check_layouts(*s.body, layouts);
  s.begin(call, std::move(layouts));
  const RowLayout& layout = s.layouts.front();
  s.ids.clear();
  for (int64_t n = 0; n < layout.packed(); n++)
    s.ids.push_back(ids[to_size(layout.packed() == layout.given ? n : layout.places[to_size(n)])]);
  s.packed.ids = s.ids;
  s.packed.layouts.push_back(&layout);
  return s.run(layout);
}

template <class Real>
std::vector<Matrix<const Real>> Module<Real>::backward(Matrix<const Real> dy) {
  State& s = *state_;
  if (!s.output) fail("{}: backward needs a forward pass first", s.body->name());
  if (dy.rows != s.output->given || dy.cols != s.output_width)
    fail("{}: the gradient has shape [{}, {}], expected that of the output, [{}, {}]", s.body->name(), dy.rows, dy.cols,
         s.output->given, s.output_width);
  check_matrix(s.body->name(), "the gradient", dy);
  s.require_gradients();
  s.backward_pass.reset();
  s.backward_pass.emplace(s.arena);
  const Matrix<const Real> packed = s.output->template pack<Real>(dy, s.arena);
  const Matrix<Real> own = s.arena.template matrix<Real>(packed.rows, packed.cols);  // the layers overwrite it
  copy_rows<Real>(packed, own);
  std::vector<Matrix<const Real>> gradients;
  for (const Matrix<Real>& dx : s.body->backward(s.packed, own, *s.context))
    gradients.push_back(s.packed.layouts[gradients.size()]->template unpack<Real>(dx, s.arena));
  return gradients;
}

template <class Real>
std::vector<std::string> Module<Real>::attention_kinds() const {
  return state_->body->attention_kinds();
}

template <class Real>
int64_t Module<Real>::attention_layers(const std::string& kind) const {
  const std::vector<std::string> kinds = attention_kinds();
  if (std::ranges::find(kinds, kind) == kinds.end())
    fail("{}: no attention is named {} (choose from: {})", state_->body->name(), excerpt(kind), fmt::join(kinds, ", "));
  return state_->body->attention_layers(kind);
}

template <class Real>
AttentionWeights<Real> Module<Real>::attention_weights(const std::string& kind, int64_t layer) const {
  const State& s = *state_;
  const int64_t layers = attention_layers(kind);
  if (layer < 0 || layer >= layers) fail("{}: layer must be from 0 to {} (is {})", s.body->name(), layers - 1, layer);
  if (!s.output) fail("{}: attention weights need a forward pass first", s.body->name());
  const AttentionPass<Real> pass = s.body->attention(s.packed, kind, layer);
  const Sequences& q = pass.keys;
  AttentionWeights<Real> found{q.count, pass.layer->heads(), 0, 0, {}};
  for (int64_t b = 0; b < q.count; b++) {
    found.queries = std::max<int64_t>(found.queries, q.q_end[b] - q.q_begin[b]);
    found.keys = std::max<int64_t>(found.keys, q.k_end[b] - q.k_begin[b]);
  }
  const int64_t T = found.queries, S = found.keys;
  found.values.resize(to_size(found.sequences * found.heads * T * S));
  for (int64_t b = 0; b < q.count; b++)
    for (int64_t h = 0; h < found.heads; h++)
      pass.layer->weights(pass.keys, pass.causal, *pass.saved, b, h,
                          {found.values.data() + (b * found.heads + h) * T * S, q.q_end[b] - q.q_begin[b],
                           q.k_end[b] - q.k_begin[b], S});
  return found;
}

template class Module<float>;
template class Module<double>;

}  // namespace qkv::layers
