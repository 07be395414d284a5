// import_model, with the GIL free while it works.
#include "qkv/import.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "options.h"

namespace qkv::python {
namespace {

// Calls `on_download`. Signals are handled at each report.
ImportReport import_with_signals(const std::string& source, const std::string& out, const nb::dict& values,
                                 const nb::callable& on_download) {
  ImportOptions options = options_of<ImportOptions>(values, "import_model");
  options.on_download = [&](const DownloadProgress& progress) {
    handle_signals();
    const nb::gil_scoped_acquire gil;
    on_download(progress);
  };
  const nb::gil_scoped_release release;
  return import_model(source, out, options);
}

}  // namespace

void bind_import(nb::module_& m) {
  nb::class_<DownloadProgress>(m, "DownloadProgress")
      .def_ro("file", &DownloadProgress::file)
      .def_ro("received", &DownloadProgress::received)
      .def_ro("size", &DownloadProgress::size)
      .def_ro("complete", &DownloadProgress::complete)
      .def_ro("note", &DownloadProgress::note);
  nb::class_<ImportReport>(m, "ImportReport")
      .def_ro("kind", &ImportReport::kind)
      .def_ro("parameters", &ImportReport::parameters)
      .def_ro("notes", &ImportReport::notes);
  m.def("import_model", import_with_signals);
}

}  // namespace qkv::python
