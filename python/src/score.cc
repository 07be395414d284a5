// Scores of translations, with the GIL free while they are computed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "qkv/evaluate.h"

namespace nb = nanobind;

void qkv::python::bind_score(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<BleuScore>(m, "BleuScore")
      .def_ro("score", &BleuScore::score)
      .def_ro("precisions", &BleuScore::precisions)
      .def_ro("brevity_penalty", &BleuScore::brevity_penalty)
      .def_ro("hypothesis_length", &BleuScore::hypothesis_length)
      .def_ro("reference_length", &BleuScore::reference_length);
  m.def("bleu", bleu, Free());
  m.def(
      "chrf",
      [](const std::vector<std::string>& hypotheses, const std::vector<std::string>& references, bool lowercase) {
        return chrf(hypotheses, references, lowercase).score;
      },
      Free());
}
