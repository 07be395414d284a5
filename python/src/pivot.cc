// Translation through languages in between, with the GIL free while the models work.
#include "qkv/pivot.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <utility>

#include "bindings.h"
#include "options.h"
#include "qkv/documents.h"
#include "translation_options.h"

namespace qkv::python {
namespace {

using Lines = std::vector<std::string>;
using Dicts = std::vector<nb::dict>;

// Loads the runs into the memory of a new object.
void make_chain(PivotTranslator* chain, const Lines& runs) {
  const nb::gil_scoped_release release;
  std::vector<Translator> translators;
  for (const std::string& run : runs) translators.emplace_back(run);
  new (chain) PivotTranslator(std::move(translators));
}

// Returns the options of each model, of which the first adds notes to the list and handles signals from time to time.
std::vector<TranslateOptions> options_of_models(const PivotTranslator& chain, const Dicts& values, const Lines& between,
                                                const char* function, Lines& notes) {
  std::vector<TranslateOptions> options;
  for (const nb::dict& of_model : values) options.push_back(options_of<TranslateOptions>(of_model, function));
  if (options.size() > 1 || !between.empty()) chain.set_languages(options, between);
  options.front().on_note = [&notes](const std::string& note) { notes.push_back(note); };
  options.front().on_progress = [](int64_t) { handle_signals(); };
  return options;
}

// Returns translations, and notes on lines.
std::pair<std::vector<Translation>, Lines> translate_by_chain(const PivotTranslator& chain, const Lines& lines,
                                                              const Dicts& values, const Lines& between,
                                                              const Lines& prefixes) {
  Lines notes;
  const std::vector<TranslateOptions> options = options_of_models(chain, values, between, "translate", notes);
  const nb::gil_scoped_release release;
  std::vector<Translation> translations = chain.translate(lines, options, prefixes);
  return {std::move(translations), std::move(notes)};
}

// Returns the document, and notes.
std::pair<nb::bytes, Lines> translate_bytes_by_chain(const PivotTranslator& chain, const std::string& name,
                                                     const nb::bytes& document, const Dicts& values,
                                                     const Lines& between, const DocumentOptions& document_options) {
  Lines notes;
  const std::vector<TranslateOptions> options = options_of_models(chain, values, between, "translate_document", notes);
  std::string bytes(document.c_str(), document.size());
  TranslatedDocument translated;
  {
    const nb::gil_scoped_release release;
    translated = translate_document(chain, name, std::move(bytes), options, document_options);
  }
  return {nb::bytes(translated.bytes.data(), translated.bytes.size()), std::move(notes)};
}

// Returns notes. Paths are bytes, as in the file system.
Lines translate_file_by_chain(const PivotTranslator& chain, const nb::bytes& path, const nb::bytes& out,
                              const Dicts& values, const Lines& between, const DocumentOptions& document_options) {
  Lines notes;
  const std::vector<TranslateOptions> options = options_of_models(chain, values, between, "translate_document", notes);
  const std::string from(path.c_str(), path.size()), to(out.c_str(), out.size());
  const nb::gil_scoped_release release;
  translate_document_file(chain, from, to, options, document_options);
  return notes;
}

}  // namespace

void bind_pivot(nb::module_& m) {
  nb::class_<PivotTranslator>(m, "PivotTranslator")
      .def("__init__", make_chain)
      .def("translate", translate_by_chain)
      .def("translate_bytes",
           [](const PivotTranslator& chain, const std::string& name, const nb::bytes& bytes, const Dicts& values,
              const Lines& between, const std::string& format, const Lines& columns,
              const std::pair<std::string, std::string>& languages) {
             return translate_bytes_by_chain(chain, name, bytes, values, between,
                                             document_options_of(format, columns, languages));
           })
      .def("translate_file", [](const PivotTranslator& chain, const nb::bytes& path, const nb::bytes& out,
                                const Dicts& values, const Lines& between, const std::string& format,
                                const Lines& columns, const std::pair<std::string, std::string>& languages) {
        return translate_file_by_chain(chain, path, out, values, between,
                                       document_options_of(format, columns, languages));
      });
}

}  // namespace qkv::python
