// Positional encoding, softmax and cross-entropy.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings.h"
#include "layer_input.h"

namespace qkv::python {
namespace {

// Calls f(Real) for the element type of an array.
template <class F>
auto with_real(const char* where, const char* name, nb::handle object, F&& f) {
  const Array array(where, name, object);
  if (array.holds<double>()) return f(double{});
  if (!array.holds<float>()) fail_in(where, "{} is {}, expected float32 or float64", name, array.type_name());
  return f(float{});
}

template <class Real>
Matrix<Real> rows_of(Result& result, int64_t width) {
  const int64_t size = static_cast<int64_t>(result.bytes() / sizeof(Real));
  return {result.data<Real>(), width > 0 ? size / width : 0, width};
}

nb::object softmax(nb::handle x) {
  return with_real("softmax", "x", x, [&]<class Real>(Real) {
    const LayerRows<Real> rows("softmax", "x", x);
    Result y(rows.shape(), dtype_of<Real>());
    {
      const nb::gil_scoped_release free;
      layers::softmax(rows.matrix(), rows_of<Real>(y, rows.matrix().cols));
    }
    return y.release(x);
  });
}

nb::object softmax_backward(nb::handle y, nb::handle grad_out) {
  return with_real("softmax_backward", "y", y, [&]<class Real>(Real) {
    const LayerRows<Real> rows("softmax_backward", "y", y), dy("softmax_backward", "grad_out", grad_out);
    if (rows.shape() != dy.shape())
      fail_in("softmax_backward", "grad_out has shape {}, expected {}", to_text(dy.shape()), to_text(rows.shape()));
    Result dx(rows.shape(), dtype_of<Real>());
    {
      const nb::gil_scoped_release free;
      layers::softmax_backward(rows.matrix(), dy.matrix(), rows_of<Real>(dx, rows.matrix().cols));
    }
    return dx.release(y);
  });
}

nb::object positional_encoding(int64_t length, int64_t d_model, const std::string& kind) {
  constexpr auto kNames = names_of(Positions{});
  const auto found = std::ranges::find(kNames, kind);
  if (found == kNames.end())
    fail_in("positional_encoding", "kind is \"{}\", expected one of {}", kind, fmt::join(kNames, ", "));
  if (length < 0 || d_model < 1)
    fail_in("positional_encoding", "length must be at least 0 and d_model at least 1 (are {} and {})", length, d_model);
  Result P({length, d_model}, dtype_of<float>());
  layers::positional_encoding(rows_of<float>(P, d_model), static_cast<Positions>(found - kNames.begin()));
  return P.release(nb::none());
}

// Returns loss, nll, the number of labels that count and the gradient.
nb::tuple cross_entropy(nb::handle logits, nb::handle labels, double label_smoothing, int32_t ignored) {
  return with_real("cross_entropy", "logits", logits, [&]<class Real>(Real) {
    const LayerRows<Real> rows("cross_entropy", "logits", logits);
    const nb::object flat = nb::module_::import_("numpy").attr("asarray")(labels).attr("reshape")(-1);
    std::vector<int32_t> ids;
    if (rows.matrix().rows > 0)
      for (const int64_t id : read_integers("cross_entropy", "labels", flat, "[N]")) {
        if (id < INT32_MIN || id > INT32_MAX)
          fail_in("cross_entropy", "labels[{}] is {}, which is too large", ids.size(), id);
        ids.push_back(static_cast<int32_t>(id));
      }
    Result gradient(rows.shape(), dtype_of<Real>());
    layers::CrossEntropy found;
    {
      const nb::gil_scoped_release free;
      found = layers::cross_entropy(rows.matrix(), ids, label_smoothing, rows_of<Real>(gradient, rows.matrix().cols),
                                    ignored);
    }
    return nb::make_tuple(found.loss, found.nll, found.tokens, gradient.release(logits));
  });
}

}  // namespace

void bind_layer_functions(nb::module_& m) {
  m.def("softmax", softmax);
  m.def("softmax_backward", softmax_backward);
  m.def("positional_encoding", positional_encoding);
  m.def("cross_entropy", cross_entropy);
}

}  // namespace qkv::python
