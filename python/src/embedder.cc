// Embedder, with the GIL free while the model works.
#include "qkv/embedder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "array.h"
#include "bindings.h"

namespace qkv::python {
namespace {

constexpr std::ptrdiff_t kPart = 256;  // texts between two looks for signals

// Vectors, [texts, d], and how many texts were cut.
std::pair<nb::object, int64_t> embed(const Embedder& embedder, const std::vector<std::string>& texts,
                                     EmbedOptions options) {
  Result result({static_cast<int64_t>(texts.size()), embedder.width()}, dtype_of<float>());
  int64_t cut = 0;
  {
    const nb::gil_scoped_release release;
    float* to = result.data<float>();
    for (auto begin = texts.begin(); begin != texts.end();) {
      const auto end = begin + std::min(kPart, texts.end() - begin);
      options.first_number = begin - texts.begin() + 1;
      const Embeddings part = embedder.embed({begin, end}, options);
      to = std::copy(part.values.begin(), part.values.end(), to);
      cut += part.cut;
      begin = end;
      handle_signals();
    }
  }
  return {result.release(nb::none()), cut};
}

}  // namespace

void bind_embedder(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::enum_<Pooling>(m, "Pooling")
      .value("mean", Pooling::mean)
      .value("first", Pooling::first)
      .value("last", Pooling::last);
  nb::class_<EmbedOptions>(m, "EmbedOptions")
      .def(nb::init<>())
      .def_rw("pooling", &EmbedOptions::pooling, nb::arg().none())
      .def_rw("normalize", &EmbedOptions::normalize, nb::arg().none())
      .def_rw("prefix", &EmbedOptions::prefix, nb::arg().none())
      .def_rw("max_length", &EmbedOptions::max_length, nb::arg().none())
      .def_rw("batch_tokens", &EmbedOptions::batch_tokens);
  nb::class_<Embedder>(m, "Embedder")
      .def(nb::init<const std::string&>(), Free())
      .def("width", &Embedder::width)
      .def("max_length", &Embedder::max_length)
      .def("embed", embed);
}

}  // namespace qkv::python
