// Translator and the attention map, with the GIL free while the model works.
#include "qkv/translator.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "array.h"
#include "bindings.h"
#include "options.h"
#include "qkv/documents.h"
#include "translation_options.h"

namespace qkv::python {
namespace {

using Lines = std::vector<std::string>;

std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<SentencePair>& sentences) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const SentencePair& s : sentences) pairs.emplace_back(s.source, s.text);
  return pairs;
}

// Returns options that add notes to the list, and handle signals from time to time.
TranslateOptions options_with_notes(const nb::dict& values, const char* function, Lines& notes) {
  TranslateOptions options = options_of<TranslateOptions>(values, function);
  options.on_note = [&notes](const std::string& note) { notes.push_back(note); };
  options.on_progress = [](int64_t) { handle_signals(); };
  return options;
}

void make_translator(Translator* translator, const std::string& run, const Lines& ensemble, const nb::dict& placement) {
  const auto place = options_of<Placement>(placement, "Translator");
  const nb::gil_scoped_release release;
  new (translator) Translator(run, ensemble, place);
}

// Returns translations, and notes on lines that were translated in parts. Handles signals from time to time.
std::pair<std::vector<Translation>, Lines> translate(const Translator& translator, const Lines& lines,
                                                     const nb::dict& values, const Lines& prefixes,
                                                     const nb::object& on_token) {
  Lines notes;
  TranslateOptions options = options_with_notes(values, "translate", notes);
  if (on_token.is_valid() && !on_token.is_none())
    options.on_token = [&](const TokenReport& report) {
      const nb::gil_scoped_acquire gil;
      return nb::cast<bool>(nb::bool_(on_token(report)));
    };
  const nb::gil_scoped_release release;
  std::vector<Translation> translations = translator.translate(lines, options, prefixes);
  return {std::move(translations), std::move(notes)};
}

// Returns the document, and notes as above.
std::pair<nb::bytes, Lines> translate_bytes(const Translator& translator, const std::string& name,
                                            const nb::bytes& document, const nb::dict& values,
                                            const DocumentOptions& document_options) {
  Lines notes;
  const TranslateOptions options = options_with_notes(values, "translate_document", notes);
  std::string bytes(document.c_str(), document.size());
  TranslatedDocument translated;
  {
    const nb::gil_scoped_release release;
    translated = qkv::translate_document(translator, name, std::move(bytes), options, document_options);
  }
  return {nb::bytes(translated.bytes.data(), translated.bytes.size()), std::move(notes)};
}

// Returns notes. Paths are bytes, as in the file system.
Lines translate_file(const Translator& translator, const nb::bytes& path, const nb::bytes& out, const nb::dict& values,
                     const DocumentOptions& document_options) {
  Lines notes;
  const TranslateOptions options = options_with_notes(values, "translate_document", notes);
  const std::string from(path.c_str(), path.size()), to(out.c_str(), out.size());
  const nb::gil_scoped_release release;
  translate_document_file(translator, from, to, options, document_options);
  return notes;
}

std::vector<Translation> score(const Translator& translator, const Lines& sources, const std::vector<Target>& targets,
                               const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "score");
  const nb::gil_scoped_release release;
  return translator.score(sources, targets, options);
}

// Returns an array [rows, width] with the rows of all texts, and where the rows of each text begin and the last ones
// end.
std::pair<nb::object, std::vector<int64_t>> arrays_of(TokenRows rows) {
  Result result({rows.offsets.back(), rows.width}, dtype_of<float>());
  std::copy(rows.values.begin(), rows.values.end(), result.data<float>());
  return {result.release(nb::none()), std::move(rows.offsets)};
}

std::pair<nb::object, std::vector<int64_t>> encode(const Translator& translator, const Lines& texts,
                                                   const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "encode");
  TokenRows rows;
  {
    const nb::gil_scoped_release release;
    rows = translator.encode(texts, options);
  }
  return arrays_of(std::move(rows));
}

std::pair<nb::object, std::vector<int64_t>> logits(const Translator& translator, const Lines& sources,
                                                   const std::vector<Target>& targets, const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "logits");
  TokenRows rows;
  {
    const nb::gil_scoped_release release;
    rows = translator.logits(sources, targets, options);
  }
  return arrays_of(std::move(rows));
}

AttentionMap attend(const Translator& translator, const std::string& source, const std::string& target,
                    const nb::dict& values, const nb::dict& attribution) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "attend");
  const AttributionOptions method = options_of<AttributionOptions>(attribution, "attend");
  const nb::gil_scoped_release release;
  return translator.attend(source, target, options, method);
}

TranslationStates hidden(const Translator& translator, const std::string& source, const std::string& target,
                         const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "hidden");
  const nb::gil_scoped_release release;
  return translator.hidden(source, target, options);
}

LogitLens lens(const Translator& translator, const std::string& source, const std::string& target,
               const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "lens");
  const nb::gil_scoped_release release;
  return translator.lens(source, target, options);
}

Patching patch_sources(const Translator& translator, const std::string& clean, const std::string& corrupted,
                       const nb::dict& patch, const nb::dict& values) {
  const PatchOptions places = options_of<PatchOptions>(patch, "patch");
  const TranslateOptions options = options_of<TranslateOptions>(values, "patch");
  const nb::gil_scoped_release release;
  return translator.patch(clean, corrupted, places, options);
}

BeamTrace trace(const Translator& translator, const std::string& source, const nb::dict& values) {
  const TranslateOptions options = options_of<TranslateOptions>(values, "trace");
  const nb::gil_scoped_release release;
  return translator.trace(source, options);
}

// Returns a map with one kind of attention. weights: [layers, heads, rows, columns].
AttentionMap map_of(const std::string& name, bool causal, const Lines& rows, const Lines& columns,
                    const nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>& weights) {
  AttentionKind kind{name, causal, rows, columns, {}};
  const auto size = static_cast<std::ptrdiff_t>(weights.shape(2) * weights.shape(3));
  const float* from = weights.data();
  for (size_t l = 0; l < weights.shape(0); l++) {
    kind.layers.emplace_back();
    for (size_t h = 0; h < weights.shape(1); h++, from += size) kind.layers.back().push_back({{from, from + size}});
  }
  return {"", "", {std::move(kind)}};
}

// Returns an array [layers, heads, rows, columns] of the weights or, if there are any, the values.
nb::object numbers(const AttentionKind& kind, std::vector<float> AttentionHead::*of_head) {
  if (!kind.layers.empty() && !kind.layers[0].empty() && (kind.layers[0][0].*of_head).empty()) return nb::none();
  const int64_t layers = static_cast<int64_t>(kind.layers.size()),
                heads = layers ? static_cast<int64_t>(kind.layers[0].size()) : 0;
  Result result({layers, heads, static_cast<int64_t>(kind.rows.size()), static_cast<int64_t>(kind.columns.size())},
                dtype_of<float>());
  float* to = result.data<float>();
  for (const auto& layer : kind.layers)
    for (const AttentionHead& head : layer) to = std::copy((head.*of_head).begin(), (head.*of_head).end(), to);
  return result.release(nb::none());
}

}  // namespace

DocumentOptions document_options_of(const std::string& format, const Lines& columns,
                                    const std::pair<std::string, std::string>& languages) {
  DocumentOptions options;
  options.format = format;
  options.source_language = languages.first;
  options.target_language = languages.second;
  options.columns = columns;
  return options;
}

void bind_translator(nb::module_& m) {
  nb::class_<TokenReport>(m, "TokenReport")
      .def_ro("line", &TokenReport::line)
      .def_ro("hypothesis", &TokenReport::hypothesis)
      .def_ro("token", &TokenReport::token)
      .def_ro("log_probability", &TokenReport::log_probability)
      .def_ro("last", &TokenReport::last);
  nb::class_<Hypothesis>(m, "Hypothesis")
      .def_ro("text", &Hypothesis::text)
      .def_ro("tokens", &Hypothesis::tokens)
      .def_ro("score", &Hypothesis::score)
      .def_ro("log_probability", &Hypothesis::log_probability)
      .def_ro("token_scores", &Hypothesis::token_scores)
      .def_prop_ro("words",
                   [](const Hypothesis& h) {
                     std::vector<std::pair<std::string, double>> words;
                     for (const WordScore& w : h.words) words.emplace_back(w.word, w.log_probability);
                     return words;
                   })
      .def_prop_ro("alignment",
                   [](const Hypothesis& h) {
                     std::vector<std::pair<int32_t, int32_t>> pairs;
                     for (const Alignment& a : h.alignment) pairs.emplace_back(a.source, a.target);
                     return pairs;
                   })
      .def_ro("attention", &Hypothesis::attention)
      .def_ro("missing_terms", &Hypothesis::missing_terms)
      .def_prop_ro("sentences", [](const Hypothesis& h) { return pairs_of(h.sentences); })
      .def_prop_ro("untranslated", [](const Hypothesis& h) { return pairs_of(h.untranslated); });
  nb::class_<Translation>(m, "Translation")
      .def_ro("source", &Translation::source)
      .def_ro("source_tokens", &Translation::source_tokens)
      .def_ro("pivot", &Translation::pivot)
      .def_ro("source_prefix", &Translation::source_prefix)
      .def_ro("hypotheses", &Translation::hypotheses);
  nb::class_<Translator>(m, "Translator")
      .def("__init__", make_translator)
      .def("translate", translate, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("translate_bytes",
           [](const Translator& t, const std::string& name, const nb::bytes& bytes, const nb::dict& values,
              const std::string& format, const Lines& columns, const std::pair<std::string, std::string>& languages) {
             return translate_bytes(t, name, bytes, values, document_options_of(format, columns, languages));
           })
      .def("translate_file",
           [](const Translator& t, const nb::bytes& path, const nb::bytes& out, const nb::dict& values,
              const std::string& format, const Lines& columns, const std::pair<std::string, std::string>& languages) {
             return translate_file(t, path, out, values, document_options_of(format, columns, languages));
           })
      .def("score", score)
      .def("attend", attend)
      .def("hidden", hidden)
      .def("lens", lens)
      .def("patch", patch_sources)
      .def("trace", trace)
      .def("encode", encode)
      .def("logits", logits)
      .def("languages", &Translator::languages);
  m.def("document_formats", [] {
    nb::dict formats;
    for (const DocumentInfo& format : known_document_formats()) formats[format.format.c_str()] = format.extensions;
    return formats;
  });
  nb::class_<AttentionKind>(m, "AttentionKind")
      .def_ro("name", &AttentionKind::name)
      .def_ro("causal", &AttentionKind::causal)
      .def_ro("rows", &AttentionKind::rows)
      .def_ro("columns", &AttentionKind::columns)
      .def_prop_ro(
          "method",
          [](const AttentionKind& kind) { return text_of(names_of(kind.method)[static_cast<size_t>(kind.method)]); })
      .def("weights", [](const AttentionKind& kind) { return numbers(kind, &AttentionHead::weights); })
      .def("values", [](const AttentionKind& kind) { return numbers(kind, &AttentionHead::values); });
  nb::class_<TokenAttribution>(m, "TokenAttribution")
      .def_prop_ro("piece", [](const TokenAttribution& token) { return text_of(token.piece); })
      .def_ro("log_probability", &TokenAttribution::log_probability)
      .def_ro("baseline", &TokenAttribution::baseline)
      .def_ro("sum", &TokenAttribution::sum);
  m.def("map_of", map_of);
  nb::class_<AttentionMap>(m, "AttentionMap")
      .def_prop_ro("source", [](const AttentionMap& map) { return text_of(map.source); })
      .def_prop_ro("target", [](const AttentionMap& map) { return text_of(map.target); })
      .def_ro("kinds", &AttentionMap::kinds)
      .def_ro("tokens", &AttentionMap::tokens)
      .def("merge_words", merge_words)
      .def("to_text",
           [](const AttentionMap& map, size_t kind, int layer, int head, bool mean, bool numbers) {
             return attention_to_text(map.kinds.at(kind), layer, head, {mean, numbers});
           })
      .def("to_html", attention_to_html)
      .def("to_json", attention_to_json);
}

}  // namespace qkv::python
