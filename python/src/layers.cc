// The modules of qkv/layers.h for float32 and float64: inputs are read where they lie, and results are arrays of their
// own, so that they do not keep the activations of the pass.
#include "qkv/layers.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "bindings.h"
#include "layer_input.h"
#include "options.h"

namespace qkv::python {
namespace {

template <class Real>
class BoundModule {
 public:
  template <class Module>
  BoundModule(std::string name, LayerKind kind, int64_t heads, Module&& module)
      : name_(std::move(name)),
        kind_(kind),
        heads_(heads),
        module_(std::make_shared<Module>(std::forward<Module>(module))) {}

  // Runs f(module), one call at a time, with the GIL free.
  template <class F>
  auto locked(F&& f) {
    const nb::gil_scoped_release free;
    const std::lock_guard lock(mutex_);
    return f(*module_);
  }

  const std::string& name() const { return name_; }
  std::shared_ptr<layers::Module<Real>> module() const { return module_; }
  std::shared_ptr<LayerPass<Real>> read(const LayerArguments& arguments) const {
    return std::make_shared<LayerPass<Real>>(name_, kind_, heads_, arguments);
  }
  std::shared_ptr<LayerPass<Real>> pass;  // the last one, whose arrays the module reads; changes while locked

 private:
  std::string name_;
  LayerKind kind_;
  int64_t heads_;
  std::shared_ptr<layers::Module<Real>> module_;
  std::mutex mutex_;
};

// A view of a parameter or gradient, which keeps the module.
template <class Real>
nb::object view_of(const BoundModule<Real>& bound, const layers::NamedArray<Real>& array) {
  using Owner = std::shared_ptr<layers::Module<Real>>;
  const nb::capsule owner(new Owner(bound.module()), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  const std::vector<size_t> shape(array.shape.begin(), array.shape.end());
  return nb::cast(nb::ndarray<nb::numpy, Real>(array.data, shape.size(), shape.data(), owner));
}

template <class Real>
nb::dict arrays(BoundModule<Real>& bound, bool gradients, bool torch) {
  const auto names = torch ? layers::Names::torch : layers::Names::own;
  nb::dict found;
  for (const auto& array : gradients ? bound.module()->gradients(names) : bound.module()->parameters(names))
    found[array.name.c_str()] = view_of(bound, array);
  return found;
}

template <class Real>
void load(BoundModule<Real>& bound, const std::vector<std::pair<std::string, nb::object>>& values) {
  std::vector<Array> kept;
  std::vector<layers::NamedArray<const Real>> named;
  for (const auto& [name, value] : values) {
    kept.emplace_back(bound.name(), name, value);
    named.push_back({name, kept.back().shape(), kept.back().template data<Real>()});
    if (kept.back().strides() != dense_strides(kept.back().shape()))
      fail_in(bound.name(), "{} must be contiguous", name);
  }
  bound.locked([&](layers::Module<Real>& module) { module.load_state_dict(named); });
}

// Copies rows to a new array of this shape.
template <class Real>
Result result_of(Matrix<const Real> m, const Shape& shape) {
  Result result(shape, dtype_of<Real>());
  for (int64_t n = 0; n < m.rows; n++) std::copy_n(m.row(n), m.cols, result.data<Real>() + n * m.cols);
  return result;
}

template <class Real>
nb::object forward(BoundModule<Real>& bound, const LayerArguments& arguments) {
  auto pass = bound.read(arguments);
  const nb::object like = arguments.inputs.front();
  Result y = bound.locked([&](layers::Module<Real>& module) {
    const Matrix<const Real> m = pass->is_of_ids()
                                     ? static_cast<layers::Embedding<Real>&>(module).forward(pass->ids(), pass->call())
                                     : module.forward(pass->inputs(), pass->call());
    Result result = result_of(m, pass->output_shape(m.cols));
    std::swap(bound.pass, pass);  // the one before is freed where the GIL is held
    return result;
  });
  return y.release(like);
}

template <class Real>
nb::list backward(BoundModule<Real>& bound, nb::handle grad_out) {
  const LayerRows<Real> dy(bound.name(), "grad_out", grad_out);
  std::vector<Result> gradients = bound.locked([&](layers::Module<Real>& module) {
    if (!bound.pass) fail_in(bound.name(), "backward needs a forward pass first");
    if (const Shape expected = bound.pass->output_shape(dy.shape().back()); dy.shape() != expected)
      fail_in(bound.name(), "grad_out has shape {}, expected {}", to_text(dy.shape()), to_text(expected));
    std::vector<Result> found;
    for (const auto& dx : module.backward(dy.matrix()))
      found.push_back(result_of(dx, bound.pass->input_shape(found.size())));
    return found;
  });
  nb::list result;
  for (Result& gradient : gradients) result.append(gradient.release(grad_out));
  return result;
}

// Returns [layers, sequences, heads, queries, keys].
template <class Real>
nb::object attention_weights(BoundModule<Real>& bound, const std::string& kind) {
  Result weights = bound.locked([&](layers::Module<Real>& module) {
    const int64_t count = module.attention_layers(kind);
    Result all;
    for (int64_t i = 0; i < count; i++) {
      const layers::AttentionWeights<Real> found = module.attention_weights(kind, i);
      if (i == 0) all = Result({count, found.sequences, found.heads, found.queries, found.keys}, dtype_of<Real>());
      std::ranges::copy(found.values, all.data<Real>() + i * std::ssize(found.values));
    }
    return all;
  });
  return weights.release(nb::none());
}

ModelConfig config_of(const char* module, const nb::dict& options) {
  ModelConfig c = layers::sizes(512, 8, 2048);
  OptionReader reader(options);
  visit_fields(c, reader);
  reader.finish(module);
  const auto given = [&](const char* name) { return options.contains(name); };
  const AttentionConfig usual = layers::sizes(c.d_model, c.attention.heads, c.ffn).attention;
  if (!given("key_width")) c.attention.key_width = usual.key_width;
  if (!given("value_width")) c.attention.value_width = usual.value_width;
  return c;
}

// Constructs the module of this name from its keyword arguments.
template <class Real>
std::shared_ptr<BoundModule<Real>> make_configured(const std::string& name, const nb::dict& options, bool causal) {
  const ModelConfig c = config_of(name.c_str(), options);
  const auto bound = [&](LayerKind kind, auto module) {
    return std::make_shared<BoundModule<Real>>(name, kind, c.attention.heads, std::move(module));
  };
  if (name == "FeedForward") return bound(LayerKind::rows, layers::FeedForward<Real>(c));
  if (name == "MultiHeadAttention") return bound(LayerKind::attention, layers::MultiHeadAttention<Real>(c));
  if (name == "EncoderLayer") return bound(LayerKind::stack, layers::EncoderLayer<Real>(c, causal));
  if (name == "DecoderLayer") return bound(LayerKind::stack, layers::DecoderLayer<Real>(c));
  if (name == "Encoder") return bound(LayerKind::stack, layers::Encoder<Real>(c, causal));
  if (name == "Decoder") return bound(LayerKind::stack, layers::Decoder<Real>(c));
  return bound(LayerKind::whole, layers::Transformer<Real>(c));
}

template <class Real>
std::shared_ptr<BoundModule<Real>> make_embedding(int64_t vocab, int64_t d_model, const nb::dict& options) {
  const ModelConfig c = config_of("Embedding", options);
  return std::make_shared<BoundModule<Real>>(
      "Embedding", LayerKind::ids, 0,
      layers::Embedding<Real>(vocab, d_model, {c.positions, c.scale_embeddings, c.max_length}));
}

template <class Real>
void bind_modules(nb::module_& m, const char* type) {
  using Bound = BoundModule<Real>;
  const auto rows = [](const char* name, auto module) {
    return std::make_shared<Bound>(name, LayerKind::rows, 0, std::move(module));
  };
  nb::class_<Bound>(m, type)
      .def_static("linear", [rows](int64_t in, int64_t out,
                                   bool bias) { return rows("Linear", layers::Linear<Real>(in, out, bias)); })
      .def_static("layer_norm",
                  [rows](int64_t d, double epsilon, bool bias) {
                    return rows("LayerNorm", layers::LayerNorm<Real>(d, epsilon, bias));
                  })
      .def_static("rms_norm",
                  [rows](int64_t d, double epsilon) { return rows("RMSNorm", layers::RMSNorm<Real>(d, epsilon)); })
      .def_static("embedding", make_embedding<Real>)
      .def_static("configured", make_configured<Real>)
      .def("arrays", arrays<Real>)
      .def("load", load<Real>)
      .def("initialize",
           [](Bound& self, uint64_t seed) {
             self.locked([&](layers::Module<Real>& module) { module.initialize(seed); });
           })
      .def("clear_gradients",
           [](Bound& self) { self.locked([](layers::Module<Real>& module) { module.clear_gradients(); }); })
      .def("forward", forward<Real>)
      .def("backward", backward<Real>)
      .def("attention_weights", attention_weights<Real>);
}

}  // namespace

void bind_layers(nb::module_& m) {
  nb::class_<LayerArguments>(m, "LayerArguments")
      .def(nb::init<std::vector<nb::object>, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object,
                    nb::object, Causal, std::optional<uint64_t>>(),
           nb::arg("inputs"), nb::arg("offsets").none(), nb::arg("lengths").none(), nb::arg("memory_offsets").none(),
           nb::arg("memory_lengths").none(), nb::arg("mask").none(), nb::arg("memory_mask").none(),
           nb::arg("source_mask").none(), nb::arg("causal"), nb::arg("seed").none());
  bind_modules<float>(m, "Float32Module");
  bind_modules<double>(m, "Float64Module");
}

}  // namespace qkv::python
