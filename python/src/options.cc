#include "options.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "qkv/classifier.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder.h"
#include "qkv/embedder_training.h"
#include "qkv/encoder.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/heads.h"
#include "qkv/hard_negatives.h"
#include "qkv/import.h"
#include "qkv/jobs.h"
#include "qkv/language.h"
#include "qkv/layers.h"
#include "qkv/recommendation.h"
#include "qkv/recommender.h"
#include "qkv/train.h"
#include "qkv/translator.h"
#include "recipe_values.h"

namespace qkv::python {
namespace {

// The option that is a text in C++, and in Python also a list of entries.
constexpr std::string_view kGlossary = "glossary";
constexpr const char* kGlossaryType = "Union[str, Mapping[str, Union[str, Iterable[str]]], Iterable[Tuple[str, str]]]";

[[noreturn]] void refuse(std::string_view name, const char* accepted, nb::handle value) {
  PyErr_Clear();
  throw Error(fmt::format("{} must be {} (is {})", name, accepted, nb::repr(value).c_str()));
}

// Returns the integer, of any type with __index__. Not valid, with a Python error set, if it is none.
nb::object index_of(nb::handle value) { return nb::steal(PyNumber_Index(value.ptr())); }

std::string string_value(std::string_view name, nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) refuse(name, "a str", value);
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text) return {text, static_cast<size_t>(size)};
  PyErr_Clear();
  throw Error(fmt::format("{} is not valid Unicode", name));
}

// Whether a value has keys with values: a dict, or any other class with items(). A list has none.
bool is_mapping(nb::handle value) {
  return PyMapping_Check(value.ptr()) && PyObject_HasAttrString(value.ptr(), "items");
}

// Returns the entries of a glossary: of a mapping of terms to their translations, each one or several, or of pairs.
std::vector<std::pair<std::string, std::string>> glossary_entries(std::string_view name, nb::handle value) {
  constexpr const char* kAccepted = "a str, a dict of terms and their translations, or a list of pairs of str";
  std::vector<std::pair<std::string, std::string>> entries;
  if (is_mapping(value)) {
    const nb::object items = nb::steal(PyMapping_Items(value.ptr()));
    if (!items.is_valid()) nb::raise_python_error();
    for (const nb::handle item : items) {
      const std::string source = string_value(name, item[0]);
      const nb::object targets = item[1];
      if (nb::isinstance<nb::str>(targets)) {
        entries.emplace_back(source, string_value(name, targets));
        continue;
      }
      if (!PyObject_HasAttrString(targets.ptr(), "__iter__")) refuse(name, kAccepted, value);
      const size_t entries_before = entries.size();
      for (const nb::handle target : targets) entries.emplace_back(source, string_value(name, target));
      if (entries.size() == entries_before)
        throw Error(fmt::format("{} must have a translation of {} (has none)", name, nb::repr(item[0]).c_str()));
    }
    return entries;
  }
  if (!PyObject_HasAttrString(value.ptr(), "__iter__")) refuse(name, kAccepted, value);
  for (const nb::handle pair : value) {
    const bool is_pair = !nb::isinstance<nb::str>(pair) && PySequence_Check(pair.ptr()) && nb::len(pair) == 2;
    if (!is_pair) refuse(name, kAccepted, pair);
    entries.emplace_back(string_value(name, pair[0]), string_value(name, pair[1]));
  }
  return entries;
}

// The type of an option in Python.
std::string type_of(const bool&) { return "bool"; }
std::string type_of(const int64_t&) { return "int"; }
std::string type_of(const uint64_t&) { return "int"; }
std::string type_of(const double&) { return "float"; }
std::string type_of(const std::string&) { return "str"; }
std::string type_of(const std::vector<std::string>&) { return "Iterable[str]"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string type_of(const Enum&) {
  const auto names = names_of(Enum{});
  const std::string literal = fmt::format("Literal[\"{}\"]", fmt::join(names, "\", \""));
  return std::ranges::find(names, "true") == names.end() ? literal : fmt::format("Union[bool, {}]", literal);
}
template <class Value>
std::string type_of(const std::optional<Value>&) {
  return fmt::format("Optional[{}]", type_of(Value()));
}

std::string default_of(bool value) { return value ? "True" : "False"; }
std::string default_of(const std::string& text) { return fmt::format("\"{}\"", text); }
std::string default_of(const std::vector<std::string>&) { return "()"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string default_of(Enum value) {
  return fmt::format("'{}'", names_of(value)[static_cast<size_t>(value)]);
}
template <class Number>
requires std::is_arithmetic_v<Number> std::string default_of(Number value) { return fmt::format("{}", value); }
template <class Value>
std::string default_of(const std::optional<Value>&) {
  return "None";
}

template <class Options>
nb::list fields_of(Options options = {}) {
  nb::list fields;
  visit_fields(options, [&](std::string_view name, const auto& value, const Field& field) {
    nb::dict entry;
    entry["name"] = nb::str(name.data(), name.size());
    entry["type"] = name == kGlossary ? kGlossaryType : type_of(value);
    entry["default"] = default_of(value);
    entry["help"] = nb::str(field.help.data(), field.help.size());
    fields.append(entry);
  });
  return fields;
}

// Returns the fields of the options of summaries.
nb::list summary_fields() {
  nb::list fields;
  for (const nb::handle field : fields_of<TranslateOptions>())
    if (std::ranges::find(kNotOfSummaries, nb::cast<std::string>(field["name"])) == kNotOfSummaries.end())
      fields.append(field);
  return fields;
}

// Returns the fields of the options of hard negatives, and of the vectors that they are found by.
nb::list hard_negative_fields() {
  nb::list fields = fields_of<HardNegativeOptions>();
  fields.extend(fields_of<EmbedOptions>());
  return fields;
}

// Returns the fields of ModelConfig that layers read and that are not arguments of their own (python/qkv/layers.py).
nb::list layer_fields() {
  static constexpr std::string_view kOthers[] = {"source_vocab",
                                                 "target_vocab",
                                                 "encoder_layers",
                                                 "decoder_layers",
                                                 "d_model",
                                                 "heads",
                                                 "ffn",
                                                 "zero_start",
                                                 "embedding_norm",
                                                 "token_types",
                                                 "tied_output",
                                                 "scale_embeddings",
                                                 "embedding_width",
                                                 "output_softcap",
                                                 "output_bias",
                                                 "shared_embeddings"};
  nb::list fields;
  for (const nb::handle field : fields_of(layers::sizes(512, 8, 2048))) {
    const auto name = nb::cast<std::string>(field["name"]);
    if (std::ranges::find(kOthers, name) != std::end(kOthers)) continue;
    if (name == "key_width" || name == "value_width") field["default"] = "d_model / heads";
    fields.append(field);
  }
  return fields;
}

}  // namespace

nb::object OptionReader::take(std::string_view name) {
  visited_.push_back(name);
  const nb::str key(name.data(), name.size());
  return values_.contains(key) ? nb::object(values_[key]) : nb::object();
}

void OptionReader::operator()(std::string_view name, bool& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  if (!PyBool_Check(value.ptr())) refuse(name, "True or False", value);
  member = value.ptr() == Py_True;
}

void OptionReader::operator()(std::string_view name, int64_t& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  const nb::object index = index_of(value);
  member = index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1;
  if (PyErr_Occurred()) refuse(name, "a whole number", value);
}

void OptionReader::operator()(std::string_view name, uint64_t& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  const nb::object index = index_of(value);
  member = index.is_valid() ? PyLong_AsUnsignedLongLong(index.ptr()) : 0;
  if (PyErr_Occurred()) refuse(name, "a whole number from 0", value);
}

void OptionReader::operator()(std::string_view name, double& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  member = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred()) refuse(name, "a number", value);
}

void OptionReader::operator()(std::string_view name, std::string& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  const bool has_entries = name == kGlossary && !nb::isinstance<nb::str>(value);
  member = has_entries ? glossary_text(glossary_entries(name, value)) : string_value(name, value);
}

void OptionReader::operator()(std::string_view name, std::vector<std::string>& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  if (nb::isinstance<nb::str>(value) || !PyObject_HasAttrString(value.ptr(), "__iter__"))
    refuse(name, "a list of str", value);
  member.clear();
  for (const nb::handle item : value) member.push_back(string_value(fmt::format("{}[{}]", name, member.size()), item));
}

void OptionReader::operator()(std::string_view name, std::vector<int64_t>& member, const Field&) {
  const nb::object value = take(name);
  if (!value.is_valid()) return;
  if (nb::isinstance<nb::str>(value) || !PyObject_HasAttrString(value.ptr(), "__iter__"))
    refuse(name, "a list of whole numbers", value);
  member.clear();
  for (const nb::handle item : value) {
    const nb::object index = index_of(item);
    member.push_back(index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1);
    if (PyErr_Occurred()) refuse(fmt::format("{}[{}]", name, member.size() - 1), "a whole number", item);
  }
}

size_t OptionReader::choose(std::string_view name, const std::vector<std::string_view>& names, size_t otherwise) {
  const nb::object value = take(name);
  if (!value.is_valid()) return otherwise;
  const bool is_bool = PyBool_Check(value.ptr());  // a choice may be named true or false
  if (is_bool || nb::isinstance<nb::str>(value)) {
    const std::string text = !is_bool ? string_value(name, value) : value.ptr() == Py_True ? "true" : "false";
    const auto found = std::ranges::find(names, text);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  refuse(name, fmt::format("one of {}", fmt::join(names, ", ")).c_str(), value);
}

void OptionReader::finish(const char* function) const {
  for (const auto& [key, value] : values_) {
    const std::string name = nb::str(key).c_str();
    if (std::ranges::find(visited_, name) == visited_.end())
      throw nb::type_error(fmt::format("{}() got an unexpected keyword argument '{}'", function, name).c_str());
  }
}

template <class Value>
nb::object to_python(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    const std::string_view name = names_of(value)[static_cast<size_t>(value)];
    return nb::str(name.data(), name.size());
  } else {
    return nb::cast(value);
  }
}

// Returns the options that differ from the program's defaults.
template <class Options>
nb::dict changed(Options options) {
  nb::dict usual, found;
  Options defaults;
  visit_fields(defaults, [&](std::string_view name, const auto& value, const Field&) {
    usual[nb::str(name.data(), name.size())] = to_python(value);
  });
  visit_fields(options, [&](std::string_view name, const auto& value, const Field&) {
    const nb::str key(name.data(), name.size());
    const nb::object own = to_python(value);
    if (!own.equal(usual[key])) found[key] = own;
  });
  return found;
}

void bind_options(nb::module_& m) {
  m.def("default_translate_options", [](const std::string& run) { return changed(default_translate_options(run)); });
  m.def("default_summary_options", [](const std::string& run) { return changed(default_summary_options(run)); });
  m.def("default_generate_options", [](const std::string& run) { return changed(default_generate_options(run)); });
  m.def("option_fields", [] {
    nb::dict all;
    all["TranslateOptions"] = fields_of<TranslateOptions>();
    all["SummaryOptions"] = summary_fields();
    all["GenerateOptions"] = fields_of<GenerateOptions>();
    all["ScoreOptions"] = fields_of<ScoreOptions>();
    all["RecommendOptions"] = fields_of<RecommendOptions>();
    all["EmbedOptions"] = fields_of<EmbedOptions>();
    all["HardNegativeOptions"] = hard_negative_fields();
    all["ClassifyOptions"] = fields_of<ClassifyOptions>();
    all["RerankOptions"] = fields_of<RerankOptions>();
    all["HeadsOptions"] = fields_of<HeadsOptions>();
    all["ImportOptions"] = fields_of<ImportOptions>();
    all["LayerOptions"] = layer_fields();
    all["TranslationRecipe"] = recipe_fields(recipe_options(translation_preset(kTranslationPreset)));
    all["RecommendationRecipe"] = recipe_fields(recipe_options(recommendation_preset(kRecommendationPreset)));
    all["LanguageRecipe"] = recipe_fields(recipe_options(language_preset(kLanguagePreset)));
    all["EncoderRecipe"] = recipe_fields(recipe_options(encoder_preset(kEncoderPreset)));
    all["EmbedderRecipe"] = recipe_fields(recipe_options(embedder_fine_tuning()));
    all["ClassifierRecipe"] = recipe_fields(recipe_options(classifier_fine_tuning()));
    return all;
  });
}

}  // namespace qkv::python
