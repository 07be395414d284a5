// Embedder, with the GIL free while the model works.
#include "qkv/embedder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "array.h"
#include "bindings.h"
#include "options.h"
#include "qkv/hard_negatives.h"

namespace qkv::python {
namespace {

constexpr std::ptrdiff_t kPart = 256;  // texts between checks for signals

void make_embedder(Embedder* embedder, const std::string& run, const nb::dict& placement) {
  const auto place = options_of<Placement>(placement, "Embedder");
  const nb::gil_scoped_release release;
  new (embedder) Embedder(run, place);
}

// Returns vectors, [texts, d], and the number of texts that were truncated.
std::pair<nb::object, int64_t> embed(const Embedder& embedder, const std::vector<std::string>& texts,
                                     const nb::dict& values) {
  EmbedOptions options = options_of<EmbedOptions>(values, "embed");
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

AttentionMap attend(const Embedder& embedder, const std::string& text, const nb::dict& values,
                    const nb::dict& attribution) {
  const EmbedOptions options = options_of<EmbedOptions>(values, "attend");
  const AttributionOptions method = options_of<AttributionOptions>(attribution, "attend");
  const nb::gil_scoped_release release;
  return embedder.attend(text, options, method);
}

// Returns the numbers of the report in the order of its members, and the lines about the data.
std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, double, double, std::vector<std::string>> mine_hard_negatives(
    const Embedder& embedder, const HardNegativeFiles& files, const nb::dict& values) {
  HardNegativeOptions options;
  EmbedOptions embed_options;
  OptionReader reader(values);
  visit_fields(options, reader);
  visit_fields(embed_options, reader);
  reader.finish("mine_hard_negatives");
  std::vector<std::string> lines;
  HardNegativeObserver observer;
  observer.on_message = [&](const std::string& line) { lines.push_back(line); };
  observer.on_progress = [](HardNegativeStep, int64_t) { handle_signals(); };
  const nb::gil_scoped_release release;
  const HardNegativeReport report = qkv::mine_hard_negatives(embedder, files, options, embed_options, observer);
  return {report.rows,
          report.written,
          report.texts,
          report.candidates,
          report.cut,
          report.positive_similarity,
          report.negative_similarity,
          lines};
}

HiddenStates hidden_of_text(const Embedder& embedder, const std::string& text, const nb::dict& values) {
  const EmbedOptions options = options_of<EmbedOptions>(values, "hidden");
  const nb::gil_scoped_release release;
  return embedder.hidden(text, options);
}

}  // namespace

void bind_embedder(nb::module_& m) {
  nb::class_<Embedder>(m, "Embedder")
      .def("__init__", make_embedder)
      .def("width", &Embedder::width)
      .def("max_length", &Embedder::max_length)
      .def("prompts", &Embedder::prompts)
      .def("attend", attend)
      .def("hidden", hidden_of_text)
      .def("mine_hard_negatives",
           [](const Embedder& embedder, const std::string& rows, const std::vector<std::string>& columns,
              const std::string& out, const nb::dict& options) {
             return mine_hard_negatives(embedder, {rows, columns, out}, options);
           })
      .def("embed", embed);
}

}  // namespace qkv::python
