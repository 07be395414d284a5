#include "serve/api/libre_files.h"

#include <openssl/rand.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "documents/restore_markup.h"
#include "documents/split_text.h"
#include "serve/api/libre_request.h"
#include "serve/engine/text_work.h"

namespace qkv {
namespace {

std::string random_id() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) fail("random numbers are not available");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

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

void answer_file(const CallPtr& call, const std::string& name, std::string bytes) {
  const std::string id = call->service().state<LibreState>().files.add(name, std::move(bytes), Call::Clock::now());
  const std::string url = fmt::format("{}://{}/download_file/{}", call->scheme(), call->head().host, id);
  call->reply_json(nlohmann::json{{"translatedFileUrl", url}}.dump());
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

void answer_translate_file(const CallPtr& call) {
  const LibreFields fields(*call);
  if (!call->service().options().files) throw HttpError(403, "Files translation are disabled on this server.");
  const FormPart& file = file_of(fields.form());
  const auto format = format_of_file(*file.filename);
  if (!format) refuse(400, "Invalid request: file format not supported");
  const std::string name = plain_name(*file.filename);
  const auto document = std::make_shared<const SplitText>(split_text(*format, std::string(file.bytes)));
  check_parts(call->service().options(), document->parts.size());
  const LibrePair pair = LibreLanguages(call->service()).find(fields.text("source"), fields.text("target"));
  if (document->parts.empty()) return answer_file(call, name, document->bytes);
  const auto on_done = [call, name, document](std::vector<Translation>&& translations) {
    std::vector<std::string> parts;
    for (size_t i = 0; i < translations.size(); i++)
      parts.push_back(restore_markup(*document, document->parts[i], translations[i]));
    answer_file(call, name, join(*document, parts));
  };
  translate(call, pair.model, parts_to_translate(call->service().options(), *document, pair, 0),
            {nullptr, nullptr, on_done});
}

void answer_download(const CallPtr& call) {
  const auto file = call->service().state<LibreState>().files.find(call->path_parts().front(), Call::Clock::now());
  if (!file) throw HttpError(404, "Invalid filename");
  call->reply({200,
               "application/octet-stream",
               file->bytes,
               {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"", file->name)}}});
}

}  // namespace qkv
