// Classifier, with the GIL free while the model works.
#include "qkv/classifier.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.h"
#include "options.h"

namespace qkv::python {
namespace {

constexpr std::ptrdiff_t kTextsPerPart = 256;  // texts between checks for signals

using Scored = std::vector<std::pair<int64_t, float>>;  // indices of labels or texts, and their scores

void make_classifier(Classifier* classifier, const std::string& run, const nb::dict& placement) {
  const auto place = options_of<Placement>(placement, "Classifier");
  const nb::gil_scoped_release release;
  new (classifier) Classifier(run, place);
}

// Returns the best labels of each text, and the number of texts that were truncated.
std::pair<std::vector<Scored>, int64_t> classify(const Classifier& classifier, const std::vector<std::string>& texts,
                                                 const std::vector<std::optional<std::string>>& pairs,
                                                 const nb::dict& values) {
  ClassifyOptions options = options_of<ClassifyOptions>(values, "classify");
  std::vector<ClassifierInput> inputs;
  for (size_t i = 0; i < texts.size(); i++) inputs.push_back({texts[i], pairs.at(i)});
  std::vector<Scored> result;
  int64_t cut = 0;
  const nb::gil_scoped_release release;
  for (auto begin = inputs.begin(); begin != inputs.end();) {
    const auto end = begin + std::min(kTextsPerPart, inputs.end() - begin);
    options.first_number = begin - inputs.begin() + 1;
    const Classifications part = classifier.classify({begin, end}, options);
    for (const auto& best : part.texts) {
      Scored& scored = result.emplace_back();
      for (const auto& [label, score] : best) scored.emplace_back(label, score);
    }
    cut += part.cut;
    begin = end;
    handle_signals();
  }
  return {std::move(result), cut};
}

std::pair<Scored, int64_t> rerank(const Classifier& classifier, const std::string& query,
                                  const std::vector<std::string>& texts, const nb::dict& values) {
  const RerankOptions options = options_of<RerankOptions>(values, "rerank");
  const nb::gil_scoped_release release;
  const Ranking ranking = classifier.rerank(query, texts, options);
  Scored scored;
  for (const auto& [index, score] : ranking.texts) scored.emplace_back(index, score);
  return {std::move(scored), ranking.cut};
}

}  // namespace

void bind_classifier(nb::module_& m) {
  nb::class_<Classifier>(m, "Classifier")
      .def("__init__", make_classifier)
      .def("labels", &Classifier::labels)
      .def("max_length", &Classifier::max_length)
      .def("classify", classify, nb::arg("texts"), nb::arg("pairs"), nb::arg("options"))
      .def("rerank", rerank);
}

}  // namespace qkv::python
