// Results of analyses of a model: hidden states, the logit lens, activation patching, steps of beam search.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "array.h"
#include "bindings.h"
#include "qkv/beam_trace.h"
#include "qkv/hidden_states.h"
#include "qkv/logit_lens.h"
#include "qkv/patching.h"

namespace qkv::python {
namespace {

// Returns an array [layers + 1, tokens, width].
nb::object state_values(const HiddenStates& found) {
  Result result({found.states, found.tokens, found.width}, dtype_of<float>());
  std::copy(found.values.begin(), found.values.end(), result.data<float>());
  return result.release(nb::none());
}

}  // namespace

void bind_analysis(nb::module_& m) {
  nb::class_<HiddenStates>(m, "HiddenStates").def_ro("pieces", &HiddenStates::pieces).def("values", state_values);
  nb::class_<TranslationStates>(m, "TranslationStates")
      .def_prop_ro("translation", [](const TranslationStates& found) { return text_of(found.translation); })
      .def_ro("encoder", &TranslationStates::encoder)
      .def_ro("decoder", &TranslationStates::decoder);
  nb::class_<LogitLens>(m, "LogitLens")
      .def("to_text", [](const LogitLens& lens) { return text_of(lens_to_text(lens)); })
      .def("to_json", [](const LogitLens& lens) { return text_of(lens_to_json(lens)); });
  nb::class_<BeamTrace>(m, "BeamTrace")
      .def("to_text", [](const BeamTrace& trace) { return text_of(beam_to_text(trace)); })
      .def("to_json", [](const BeamTrace& trace) { return text_of(beam_to_json(trace)); });
  nb::class_<Patching>(m, "Patching")
      .def("to_text", [](const Patching& patching) { return text_of(patching_to_text(patching)); })
      .def("to_json", [](const Patching& patching) { return text_of(patching_to_json(patching)); });
}

}  // namespace qkv::python
