// The routes of LibreTranslate 1.9.
#include "serve/api/libre_routes.h"

#include <openssl/rand.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "documents/document.h"
#include "documents/languages.h"
#include "serve/api/families.h"
#include "serve/api/libre_request.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/text_work.h"
#include "text/unicode.h"

namespace qkv {
namespace {

std::string random_id() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) fail("random numbers are not available");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// ---- Texts, languages and settings

using nlohmann::ordered_json;

constexpr int64_t kMostAlternatives = 15;

// One text of a request, and what became of it.
struct LibreText {
  Document document;
  std::optional<DetectedLanguage> detected = {};
  LibrePair pair = {};  // its model is null if both languages are the same
  size_t first = 0;     // of its parts among those of the request
};

struct LibreRequest {
  bool is_list = false, detects = false;
  int64_t alternatives = 0;
  std::vector<LibreText> texts;
};

std::vector<DetectedLanguage> detect(const LibreLanguages& languages, const std::vector<std::string>& sources,
                                     const std::string& text) {
  std::vector<OfferedLanguage> known;
  for (const std::string& code : sources) {
    const ModelPtr model = languages.any_from(code);
    known.push_back({code, [model](const std::string& t) {
                       return count_tokens(t, model->reader().tokenize(t), model->reader().unknown_token());
                     }});
  }
  return detect_language(text, known);
}

// The languages that a text may be in: those that are translated to the target.
std::vector<std::string> sources_of(const LibreLanguages& languages, const std::string& target) {
  std::vector<std::string> sources;
  for (const std::string& source : languages.sources()) {
    const std::vector<std::string> targets = languages.targets(source);
    if (std::any_of(targets.begin(), targets.end(), [&](const auto& t) { return is_same_language(t, target); }))
      sources.push_back(source);
  }
  return sources;
}

const DocumentFormat& format_of(const std::string& name) {
  if (!name.empty() && name != "text" && name != "html") refuse(400, "{} format is not supported", name.substr(0, 32));
  return *find_document_format(name.empty() ? "text" : name);
}

int64_t alternatives_of(const ServerOptions& limits, const std::string& text) {
  if (text.empty()) return 0;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0)
    refuse(400, "Invalid request: alternatives parameter is not a number");
  const int64_t most = std::min(kMostAlternatives, limits.max_beam - 1);
  if (count > most) refuse(400, "Invalid request: alternatives parameter must be <= {}", most);
  return count;
}

void check_length(const ServerOptions& limits, const std::vector<std::string>& texts) {
  int64_t characters = 0;
  for (const std::string& text : texts) characters = std::max(characters, count_characters(text));
  if (characters > limits.max_text)
    refuse(400, "Invalid request: request ({}) exceeds text limit ({})", characters, limits.max_text);
}

LibreRequest read_libre_request(Call& call, const LibreFields& fields) {
  const Texts& q = fields.texts("q");
  if (q.texts.empty() || (!q.is_list && q.texts.front().empty())) refuse(400, "Invalid request: missing q parameter");
  const std::string source = fields.required("source"), target = fields.required("target");
  check_length(call.service().options(), q.texts);
  LibreRequest request;
  request.is_list = q.is_list;
  request.detects = source == "auto";
  request.alternatives = alternatives_of(call.service().options(), fields.text("alternatives"));
  const LibreLanguages languages(call.service());
  if (!request.detects && !languages.has(source)) refuse(400, "{} is not supported", source.substr(0, 32));
  if (!languages.has(target)) refuse(400, "{} is not supported", target.substr(0, 32));
  const DocumentFormat& format = format_of(fields.text("format"));
  const std::vector<std::string> sources = request.detects ? sources_of(languages, target) : std::vector<std::string>();
  for (const std::string& text : q.texts) {
    LibreText one{Document(format, text)};
    if (request.detects) {
      const auto found = detect(languages, sources, text);
      one.detected = found.empty() ? DetectedLanguage{target, 0} : found.front();
    }
    const std::string& from = request.detects ? one.detected->code : source;
    if (!is_same_language(from, target)) one.pair = languages.find(from, target);
    request.texts.push_back(std::move(one));
  }
  return request;
}

// Returns the text with the hypotheses of this place, or the last ones where there are fewer.
std::string text_with(const LibreText& text, const std::vector<Translation>& translations, size_t hypothesis) {
  if (!text.pair.model) return text.document.texts().front().bytes;
  return text.document.translated(std::span(translations).subspan(text.first, text.document.parts()), hypothesis);
}

ordered_json one_or_list(bool is_list, std::vector<ordered_json> values) {
  return is_list ? ordered_json(std::move(values)) : std::move(values.front());
}

std::string libre_answer(const LibreRequest& request, const std::vector<Translation>& translations) {
  std::vector<ordered_json> texts, detected, alternatives;
  for (const LibreText& text : request.texts) {
    texts.emplace_back(text_with(text, translations, 0));
    if (text.detected)
      detected.push_back({{"confidence", text.detected->confidence}, {"language", text.detected->code}});
    ordered_json others = ordered_json::array();
    for (int64_t k = 1; k <= request.alternatives; k++) {
      ordered_json other = text_with(text, translations, static_cast<size_t>(k));
      if (other != texts.back() && std::find(others.begin(), others.end(), other) == others.end())
        others.push_back(std::move(other));
    }
    alternatives.push_back(std::move(others));
  }
  ordered_json answer = ordered_json::object();
  if (request.alternatives > 0) answer["alternatives"] = one_or_list(request.is_list, std::move(alternatives));
  if (request.detects) answer["detectedLanguage"] = one_or_list(request.is_list, std::move(detected));
  answer["translatedText"] = one_or_list(request.is_list, std::move(texts));
  return answer.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void answer_libre_translate(const CallPtr& call) {
  const LibreFields fields(*call);
  const auto request = std::make_shared<LibreRequest>(read_libre_request(*call, fields));
  std::vector<TextToTranslate> parts;
  ModelPtr model;
  for (LibreText& text : request->texts) {
    if (!text.pair.model) continue;
    if (model && text.pair.model != model) refuse(400, "the texts are in languages of several models");
    model = text.pair.model;
    text.first = parts.size();
    for (TextToTranslate& part :
         parts_to_translate(call->service().options(), text.document, text.pair, request->alternatives))
      parts.push_back(std::move(part));
  }
  check_parts(call->service().options(), parts.size());
  if (parts.empty()) return call->reply_json(libre_answer(*request, {}));
  translate(call, model, std::move(parts), {nullptr, nullptr, [call, request](std::vector<Translation>&& translations) {
                                              call->reply_json(libre_answer(*request, translations));
                                            }});
}

void answer_detect(const CallPtr& call) {
  const LibreFields fields(*call);
  const std::string text = fields.required("q");
  check_length(call->service().options(), {text});
  const LibreLanguages languages(call->service());
  ordered_json list = ordered_json::array();
  for (const DetectedLanguage& language : detect(languages, languages.sources(), text))
    list.push_back({{"confidence", language.confidence}, {"language", language.code}});
  call->reply_json(list.dump());
}

void answer_languages(const CallPtr& call) {
  const LibreLanguages languages(call->service());
  ordered_json list = ordered_json::array();
  for (const std::string& source : languages.sources()) {
    ordered_json targets = languages.targets(source);
    targets.push_back(source);
    list.push_back({{"code", source}, {"name", language_name(source)}, {"targets", std::move(targets)}});
  }
  call->reply_json(list.dump());
}

std::vector<std::string_view> file_extensions() {
  std::vector<std::string_view> extensions;
  for (const DocumentFormat* format : all_document_formats())
    extensions.insert(extensions.end(), format->extensions.begin(), format->extensions.end());
  return extensions;
}

void answer_settings(const CallPtr& call) {
  const Service& service = call->service();
  const LibreLanguages languages(service);
  const std::vector<std::string> sources = languages.sources();
  const std::string source = sources.empty() ? "und" : sources.front();
  const std::vector<std::string> targets = languages.targets(source);
  const std::string target = targets.empty() ? "und" : targets.front();
  call->reply_json(ordered_json{
      {"charLimit", service.options().max_text},
      {"frontendTimeout", 300},
      {"apiKeys", service.admission().needs_keys()},
      {"keyRequired", service.admission().needs_keys()},
      {"suggestions", !service.options().suggestions.empty()},
      {"filesTranslation", !service.options().no_files},
      {"supportedFilesFormat", service.options().no_files ? ordered_json::array() : ordered_json(file_extensions())},
      {"language",
       {{"source", {{"code", source}, {"name", language_name(source)}}},
        {"target", {{"code", target}, {"name", language_name(target)}}}}}}
                       .dump());
}

// ---- Suggestions and files

// Returns a name without what a header or a path gives a meaning to.
std::string plain_name(std::string_view name) {
  const size_t slash = name.find_last_of("/\\");
  std::string plain(name.substr(slash == name.npos ? 0 : slash + 1));
  for (char& c : plain)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-')) c = '_';
  return plain.substr(plain.size() - std::min<size_t>(plain.size(), 100));
}

const FormPart& file_of(const std::vector<FormPart>& parts) {
  for (const FormPart& part : parts)
    if (part.name == "file" && part.filename) return part;
  throw HttpError(400, "Invalid request: missing file parameter");
}

// The answer of /translate_file: where the translated file is, which with `streams` is the last event of a stream.
struct FileAnswer {
  CallPtr call;
  std::string name;
  bool streams = false;

  void send(std::string bytes) const {
    const std::string id = call->service().state<LibreState>().files.add(name, std::move(bytes), Call::Clock::now());
    const std::string url = fmt::format("{}://{}/download_file/{}", call->scheme(), call->head().host, id);
    const std::string answer = nlohmann::json{{"translatedFileUrl", url}}.dump();
    if (!streams) return call->reply_json(answer);
    call->send_event(answer);
    call->end_events();
  }
};

// Returns a handler that sends how many of all texts are translated, at most a hundred times. It counts on the prepare
// thread, because texts end on several.
std::function<void(size_t, const Translation&)> progress_events(const CallPtr& call, size_t all) {
  const auto count = [all, done = std::make_shared<size_t>(0)](const CallPtr& counting) {
    const size_t before = 100 * *done / all;
    if (100 * ++*done / all > before) counting->send_event(fmt::format(R"({{"done":{},"of":{}}})", *done, all));
  };
  return [call, count](size_t, const Translation&) { call->service().leave(call, count); };
}

// POST /suggest
void answer_suggest(const CallPtr& call) {
  const LibreFields fields(*call);
  std::optional<AppendFile>& file = call->service().state<LibreState>().suggestions;
  if (!file) throw HttpError(403, "Suggestions are disabled on this server.");
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (const char* name : {"q", "s", "source", "target"}) line[name] = fields.required(name);
  const auto done = [weak = std::weak_ptr(call), &service = call->service()](std::string error) {
    service.post_to(weak, [error = std::move(error)](const CallPtr& waiting) {
      if (!error.empty()) refuse(503, "the suggestion could not be stored: {}", error);
      waiting->reply_json(R"({"success":true})");
    });
  };
  if (!file->append(line.dump() + "\n", done)) refuse(503, "too many suggestions wait for the disk");
}

constexpr int64_t kMostFileBytes = int64_t{32} << 20;  // of the text in an archive

// POST /translate_file
void answer_translate_file(const CallPtr& call) {
  const LibreFields fields(*call);
  if (call->service().options().no_files) throw HttpError(403, "Files translation are disabled on this server.");
  const FormPart& file = file_of(fields.form());
  const DocumentFormat* format = format_of_file(*file.filename);
  if (!format) refuse(400, "Invalid request: file format not supported");
  const FileAnswer answer{call, plain_name(*file.filename), fields.text("stream") == "true"};
  if (answer.streams) call->will_stream();
  const LibrePair pair = LibreLanguages(call->service()).find(fields.text("source"), fields.text("target"));
  DocumentOptions options;
  options.most_bytes = kMostFileBytes;
  if (pair.source != "und") options.source_language = pair.source;
  if (pair.target != "und") options.target_language = pair.target;
  const auto document = std::make_shared<const Document>(*format, std::string(file.bytes), options);
  check_parts(call->service().options(), document->parts());
  if (document->parts() == 0) return answer.send(std::string(file.bytes));
  std::vector<TextToTranslate> texts = parts_to_translate(call->service().options(), *document, pair, 0);
  TranslationHandlers handlers;
  if (answer.streams) handlers.on_text = progress_events(call, texts.size());
  handlers.on_done = [answer, document](std::vector<Translation>&& translations) {
    answer.send(document->translated(translations));
  };
  translate(call, pair.model, std::move(texts), std::move(handlers));
}

// GET /download_file/ID
void answer_download(const CallPtr& call) {
  const auto file = call->service().state<LibreState>().files.find(call->path_parts().front(), Call::Clock::now());
  if (!file) throw HttpError(404, "Invalid filename");
  call->reply({200,
               "application/octet-stream",
               file->bytes,
               {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"", file->name)}}});
}

}  // namespace

void TranslatedFiles::drop_old(Time now, size_t room) {
  while (!files_.empty() && (files_.front().until <= now || size_ + room > kMost)) {
    size_ -= files_.front().bytes.size();
    files_.pop_front();
  }
}

std::string TranslatedFiles::add(std::string name, std::string bytes, Time now) {
  const std::lock_guard lock(mutex_);
  drop_old(now, bytes.size());
  size_ += bytes.size();
  files_.push_back({random_id(), std::move(name), std::move(bytes), now + kKept});
  return files_.back().id;
}

std::optional<TranslatedFiles::File> TranslatedFiles::find(const std::string& id, Time now) {
  const std::lock_guard lock(mutex_);
  drop_old(now, 0);
  const auto file = std::find_if(files_.begin(), files_.end(), [&](const File& f) { return f.id == id; });
  return file == files_.end() ? std::nullopt : std::optional(*file);
}

LibreState::LibreState(const ServerOptions& options) {
  constexpr size_t kLongest = size_t{1} << 30;  // bytes of a suggestion: more than a body may have
  if (options.suggestions.empty()) return;
  suggestions.emplace(options.suggestions);
  suggestions->recover(kLongest, [](const AppendFile::Line&) {});
}

std::span<const Route> libre_routes() {
  static const Route routes[] = {
      {"POST", "/translate", Family::libretranslate, answer_libre_translate, BodyType::json_or_form,
       ModelUse::translate, false, nullptr, true},
      {"POST", "/detect", Family::libretranslate, answer_detect, BodyType::json_or_form, ModelUse::none, false, nullptr,
       true},
      {"POST", "/suggest", Family::libretranslate, answer_suggest, BodyType::json_or_form, ModelUse::none, false,
       nullptr, true},
      {"POST", "/translate_file", Family::libretranslate, answer_translate_file, BodyType::multipart,
       ModelUse::translate, false, nullptr, true},
      {"GET", "/download_file/{}", Family::libretranslate, answer_download},
      {"GET", "/languages", Family::libretranslate, answer_languages, BodyType::none, ModelUse::none, true},
      {"GET", "/frontend/settings", Family::libretranslate, answer_settings, BodyType::none, ModelUse::none, true},
  };
  return routes;
}

}  // namespace qkv
