// The extension module qkv._qkv.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "options.h"
#include "qkv/error.h"
#include "qkv/system.h"

namespace nb = nanobind;

void qkv::python::handle_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

namespace {

// Raises an Error, a Python type, with its message, which may quote bytes that are not UTF-8.
void raise_error(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const qkv::Error& error) {
    PyErr_SetObject(static_cast<PyObject*>(type), qkv::python::text_of(error.what()).ptr());
  }
}

}  // namespace

NB_MODULE(_qkv, m) {
  const nb::exception<qkv::Error> error(m, "Error", PyExc_ValueError);
  nb::register_exception_translator(raise_error, error.ptr());
  m.attr("__version__") = QKV_VERSION;
  m.def("set_threads", [](int64_t count) {
    if (count < 1 || count > 1024)
      throw qkv::Error("set_threads: count must be between 1 and 1024 (is " + std::to_string(count) + ")");
    qkv::set_threads(static_cast<int>(count));
  });
  m.def("threads", qkv::threads);
  m.def("version", qkv::version);
  m.def("fma_peak", [](double seconds) {
    const nb::gil_scoped_release release;
    return qkv::measure_fma_peak(seconds);
  });
  qkv::python::bind_analysis(m);
  qkv::python::bind_attention(m);
  qkv::python::bind_translator(m);
  qkv::python::bind_pivot(m);
  qkv::python::bind_recommender(m);
  qkv::python::bind_evaluate(m);
  qkv::python::bind_classifier(m);
  qkv::python::bind_embedder(m);
  qkv::python::bind_generator(m);
  qkv::python::bind_heads(m);
  qkv::python::bind_import(m);
  qkv::python::bind_layers(m);
  qkv::python::bind_layer_functions(m);
  qkv::python::bind_export(m);
  qkv::python::bind_score(m);
  qkv::python::bind_training(m);
  qkv::python::bind_part_folders(m);
  qkv::python::bind_options(m);
  qkv::python::bind_openmp_pool(m);
}
