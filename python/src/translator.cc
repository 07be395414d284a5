// Translator and the attention map, with the GIL free while the model works.
#include "qkv/translator.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include "array.h"
#include "bindings.h"

namespace qkv::python {
namespace {

using Lines = std::vector<std::string>;

// A translator that waits for its turn where several threads call it.
class SharedTranslator {
 public:
  explicit SharedTranslator(const std::string& directory) : translator_(directory) {}

  // Translations, and notes about lines that were cut. Signals are handled after every batch.
  std::pair<Lines, Lines> translate(const Lines& lines, int64_t beam, double length_penalty, int64_t batch_tokens) {
    const std::lock_guard turn(mutex_);
    Lines notes;
    TranslateOptions options{beam, length_penalty, batch_tokens,
                             [&](const std::string& note) { notes.push_back(note); },
                             [](int64_t) { handle_signals(); }};
    Lines translations = translator_.translate(lines, options);
    return {std::move(translations), std::move(notes)};
  }

  AttentionMap attend(const std::string& source, const std::string& target) {
    const std::lock_guard turn(mutex_);
    return translator_.attend(source, target);
  }

 private:
  Translator translator_;
  std::mutex mutex_;
};

// [layers, heads, rows, columns]
nb::object weights(const AttentionKind& kind) {
  const int64_t layers = static_cast<int64_t>(kind.layers.size()),
                heads = layers ? static_cast<int64_t>(kind.layers[0].size()) : 0;
  Result result({layers, heads, static_cast<int64_t>(kind.rows.size()), static_cast<int64_t>(kind.columns.size())},
                dtype_of<float>());
  float* to = result.data<float>();
  for (const auto& layer : kind.layers)
    for (const AttentionHead& head : layer) to = std::copy(head.weights.begin(), head.weights.end(), to);
  return result.release(nb::none());
}

}  // namespace

void bind_translator(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<SharedTranslator>(m, "Translator")
      .def(nb::init<const std::string&>(), Free())
      .def("translate", &SharedTranslator::translate, Free())
      .def("attend", &SharedTranslator::attend, Free());
  nb::class_<AttentionKind>(m, "AttentionKind")
      .def_ro("name", &AttentionKind::name)
      .def_ro("causal", &AttentionKind::causal)
      .def_ro("rows", &AttentionKind::rows)
      .def_ro("columns", &AttentionKind::columns)
      .def("weights", weights);
  nb::class_<AttentionMap>(m, "AttentionMap")
      .def_ro("source", &AttentionMap::source)
      .def_ro("target", &AttentionMap::target)
      .def_ro("kinds", &AttentionMap::kinds)
      .def("merge_words", merge_words)
      .def("to_html", attention_to_html)
      .def("to_json", attention_to_json);
}

}  // namespace qkv::python
