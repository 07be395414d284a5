#include "serve/api/libre_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "documents/languages.h"
#include "serve/engine/request_limits.h"
#include "serve/http/http_target.h"
#include "serve/http/multipart.h"

namespace qkv {
namespace {

void add_field(std::map<std::string, Texts>& fields, const std::string& name, std::string value) {
  Texts& texts = fields[name];
  texts.is_list = !texts.texts.empty();
  texts.texts.push_back(std::move(value));
}

Texts texts_of_member(const nlohmann::json& value) {
  if (value.is_string()) return {{value.get<std::string>()}, false};
  if (!value.is_array()) return {{value.is_null() ? "" : value.dump()}, false};
  Texts texts{{}, true};
  for (const nlohmann::json& entry : value) {
    if (!entry.is_string()) refuse(400, "Invalid request: q must be a string or a list of strings");
    texts.texts.push_back(entry.get<std::string>());
  }
  return texts;
}

void add_json(std::map<std::string, Texts>& fields, const std::string& body) {
  nlohmann::json object;
  try {
    object = parse_json(body, "body");
  } catch (const Error&) {
    refuse(400, "Invalid JSON format");
  }
  if (!object.is_object()) refuse(400, "Invalid request: the body must be a JSON object");
  for (const auto& [name, value] : object.items()) fields[name] = texts_of_member(value);
}

void add_unique(std::vector<std::string>& codes, const std::string& code) {
  if (std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
}

}  // namespace

LibreFields::LibreFields(Call& call) {
  for (const auto& [name, value] : call.head().target.query) add_field(fields_, name, value);
  const std::string_view type = call.head().find("content-type");
  if (is_multipart(type)) {
    form_ = parse_multipart(type, call.body());
    for (const FormPart& part : form_)
      if (!part.filename) add_field(fields_, part.name, std::string(part.bytes));
  } else if (type.find("json") != type.npos) {
    add_json(fields_, call.body());
  } else {
    for (auto& [name, value] : parse_form(call.body())) add_field(fields_, name, value);
  }
  call.identify(text("api_key"));
}

std::string LibreFields::text(const std::string& name) const {
  const auto field = fields_.find(name);
  return field == fields_.end() || field->second.texts.empty() ? "" : field->second.texts.front();
}

std::string LibreFields::required(const std::string& name) const {
  std::string value = text(name);
  if (value.empty()) refuse(400, "Invalid request: missing {} parameter", name);
  return value;
}

const Texts& LibreFields::texts(const std::string& name) const {
  static const Texts none;
  const auto field = fields_.find(name);
  return field == fields_.end() ? none : field->second;
}

LibreLanguages::LibreLanguages(const Service& service) {
  for (const ModelPtr& model : service.models()) {
    if (!model->serves(ModelUse::translate)) continue;
    const std::vector<std::string> codes = model->languages();
    if (codes.empty()) pairs_.push_back({model, model->source_language, model->target_language});
    for (const std::string& source : codes)
      for (const std::string& target : codes)
        if (source != target) pairs_.push_back({model, source, target});
  }
}

std::vector<std::string> LibreLanguages::sources() const {
  std::vector<std::string> codes;
  for (const LibrePair& pair : pairs_) add_unique(codes, pair.source);
  return codes;
}

std::vector<std::string> LibreLanguages::targets(const std::string& source) const {
  std::vector<std::string> codes;
  for (const LibrePair& pair : pairs_)
    if (pair.source == source && pair.target != source) add_unique(codes, pair.target);
  return codes;
}

bool LibreLanguages::has(const std::string& language) const {
  return std::any_of(pairs_.begin(), pairs_.end(), [&](const LibrePair& pair) {
    return is_same_language(pair.source, language) || is_same_language(pair.target, language);
  });
}

LibrePair LibreLanguages::find(const std::string& source, const std::string& target) const {
  for (const LibrePair& pair : pairs_)
    if (is_same_language(pair.source, source) && is_same_language(pair.target, target)) return pair;
  for (const std::string& code : {source, target})
    if (!has(code)) refuse(400, "{} is not supported", code.size() > 32 ? code.substr(0, 32) : code);
  refuse(400, "{} ({}) is not available as a target language from {} ({})", language_name(target), target,
         language_name(source), source);
}

ModelPtr LibreLanguages::any_from(const std::string& source) const {
  for (const LibrePair& pair : pairs_)
    if (pair.source == source) return pair.model;
  return nullptr;
}

std::vector<TextToTranslate> parts_to_translate(const ServerOptions& limits, const Document& document,
                                                const LibrePair& pair, int64_t alternatives) {
  TranslateOptions options = usual_options(limits, *pair.model);
  options.n_best = alternatives + 1;
  options.beam = std::max(options.beam, options.n_best);
  options.alignment = document.has_tags();
  if (pair.model->translator) pair.model->translator->set_languages(options, pair.source, pair.target);
  const auto before =
      options_before(*pair.model, [&](const ServedModel& model) { return usual_options(limits, model); });
  std::vector<TextToTranslate> texts;
  const auto shared = std::make_shared<const TranslateOptions>(std::move(options));
  for (std::string& text : document.part_texts()) texts.push_back({{std::move(text)}, shared, before});
  return texts;
}

void check_parts(const ServerOptions& limits, size_t parts) {
  if (static_cast<int64_t>(parts) > limits.max_texts)
    refuse(400, "Invalid request: request ({}) exceeds text limit ({})", parts, limits.max_texts);
}

}  // namespace qkv
