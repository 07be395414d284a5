// Analysis of attention heads, with the GIL free. Python reads the report as JSON.
#include "qkv/heads.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.h"
#include "options.h"

namespace qkv::python {
namespace {

HeadsReport analyse(const std::string& run, const std::string& data, const nb::dict& values) {
  HeadsOptions options = options_of<HeadsOptions>(values, "analyse_heads");
  options.data = data;
  const nb::gil_scoped_release release;
  return analyse_heads(run, options);
}

// Returns the members of PruneReport.
std::tuple<std::string, std::vector<std::string>, int64_t, int64_t> prune(const HeadsReport& report, int64_t count,
                                                                          const std::string& out) {
  const nb::gil_scoped_release release;
  check_prune(report.run, count, out);
  PruneReport found = prune_heads(report.run, report, count, out);
  return {std::move(found.out), std::move(found.removed), found.parameters_before, found.parameters};
}

}  // namespace

void bind_heads(nb::module_& m) {
  nb::class_<HeadsReport>(m, "HeadsReport")
      .def("to_text", [](const HeadsReport& report) { return text_of(heads_to_text(report)); })
      .def("to_json", [](const HeadsReport& report) { return text_of(heads_to_json(report)); })
      .def("to_html", [](const HeadsReport& report) { return text_of(heads_to_html(report)); })
      .def("prune", prune);
  m.def("analyse_heads", analyse);
}

}  // namespace qkv::python
