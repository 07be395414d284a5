#include "untranslated_report.h"

#include <nlohmann/json.hpp>

#include "commands.h"

UntranslatedReport::UntranslatedReport(const std::string& path) {
  if (!path.empty()) file_.emplace(path);
}

void UntranslatedReport::listen(qkv::TranslateOptions& options, std::string document) {
  if (!file_) return;
  options.on_untranslated = [this, document = std::move(document)](int64_t number, const qkv::SentencePair& sentence) {
    add(document, number, sentence);
  };
}

void UntranslatedReport::add(const std::string& document, int64_t number, const qkv::SentencePair& sentence) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!document.empty()) json["document"] = document;
  json[document.empty() ? "line" : "text_number"] = number + 1;
  json["source"] = sentence.source;
  json["text"] = sentence.text;
  file_->write(json_line(json));
}

void UntranslatedReport::commit() {
  if (file_) file_->commit();
}
