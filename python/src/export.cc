// export_model and quantize, with the GIL free while they work.
#include "qkv/export.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "options.h"
#include "qkv/runs.h"

namespace qkv::python {
namespace {

// Returns the type of the model and its number of parameters.
std::pair<std::string, int64_t> export_as(const std::string& run, const std::string& out, const nb::dict& values) {
  ExportType type = ExportType::float32;
  OptionReader reader(values);
  reader("dtype", type);
  const nb::gil_scoped_release release;
  const ExportReport report = export_model(run, out, type);
  return {report.model_type, report.parameters};
}

std::tuple<std::string, int64_t, int64_t, int64_t, int64_t> quantize(const std::string& run, const std::string& out,
                                                                     int bits) {
  const nb::gil_scoped_release release;
  const QuantizeReport report = quantize_run(run, out, bits);
  return {report.out, report.int8_matrices, report.int4_matrices, report.bytes_before, report.bytes};
}

}  // namespace

void bind_export(nb::module_& m) {
  m.def("export_model", export_as);
  m.def("quantize", quantize);
}

}  // namespace qkv::python
