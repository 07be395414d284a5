#include "convert/text/chat_import.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "chat/chat_template.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using Templates = std::map<std::string, std::string>;

constexpr const char* kFolder = "additional_chat_templates";
constexpr const char* kSuffix = ".jinja";

std::string template_text(const json& value, const std::string& where) {
  if (!value.is_string()) fail("{}: chat_template must be a text or a list of objects with name and template", where);
  return value.get<std::string>();
}

// chat_template: a text, or a list of objects with name and template.
Templates templates_in(const Settings& settings) {
  const json* found = settings.find("chat_template");
  if (!found) return {};
  if (!found->is_array()) return {{kDefaultTemplate, template_text(*found, settings.where())}};
  Templates templates;
  for (const json& entry : *found) {
    if (!entry.is_object()) template_text(entry.is_string() ? json() : entry, settings.where());
    const std::string name = template_text(entry.value("name", json()), settings.where());
    check_template_name(name, settings.where());
    templates[name] = template_text(entry.value("template", json()), settings.where());
  }
  return templates;
}

Templates templates_in_files(const ModelFiles& files) {
  Templates templates;
  const auto read = [&](const std::string& name, const std::string& file) {
    const auto bytes = files.open_small(file);
    if (const size_t bad = find_invalid_utf8(bytes->text()); bad != std::string_view::npos)
      fail("{}: byte {} is not valid UTF-8", files.path(file), bad + 1);
    templates[name] = bytes->text();
  };
  if (files.has("chat_template.jinja")) read(kDefaultTemplate, "chat_template.jinja");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(files.path(kFolder), error)) {
    if (entry.path().extension() != kSuffix) continue;
    const std::string name = entry.path().stem().string();
    check_template_name(name, files.path(kFolder));
    read(name, std::string(kFolder) + "/" + entry.path().filename().string());
  }
  return templates;
}

ChatTokens tokens_in(const Settings& settings) {
  ChatTokens tokens;
  tokens.bos_token = token_of(settings, "bos_token");
  tokens.eos_token = token_of(settings, "eos_token");
  tokens.unk_token = token_of(settings, "unk_token");
  tokens.sep_token = token_of(settings, "sep_token");
  tokens.pad_token = token_of(settings, "pad_token");
  tokens.cls_token = token_of(settings, "cls_token");
  tokens.mask_token = token_of(settings, "mask_token");
  for (const AddedToken& token : added_tokens_of(settings)) {
    if (token.strips_left) tokens.strip_left.push_back(token.text);
    if (token.strips_right) tokens.strip_right.push_back(token.text);
  }
  tokens.space_after_tokens = settings.flag("legacy", true);
  return tokens;
}

// The tokens that a text never has by itself.
std::vector<std::string> control_tokens(const TextCodec& codec) {
  std::vector<std::string> tokens;
  if (has_tokenizer_json(codec.unit())) {
    for (const AddedToken& token : codec.hugging_face_tokenizer().spec().added) tokens.push_back(token.text);
  } else if (codec.unit() == TextUnit::pieces) {
    const std::vector<int32_t> types = piece_types(codec.tokenizer().serialized());
    for (size_t id = 0; id < types.size(); id++)
      if (types[id] == kControlPiece || types[id] == kUserDefinedPiece)
        tokens.push_back(codec.tokenizer().piece(static_cast<int32_t>(id)));
  }
  return tokens;
}

}  // namespace

ChatFiles read_chat(const ModelFiles& files) {
  const Settings settings = read_tokenizer_config(files);
  ChatFiles chat;
  chat.templates = templates_in_files(files);
  if (chat.templates.empty()) chat.templates = templates_in(settings);
  if (chat.templates.empty() && files.has("chat_template.json"))
    chat.templates =
        templates_in(Settings(files.open_small("chat_template.json")->text(), files.path("chat_template.json")));
  if (!chat.templates.empty()) chat.tokens = tokens_in(settings);
  return chat;
}

std::string end_of_answer(const ChatFiles& chat, const TextCodec& codec) {
  const auto usual = chat.templates.find(kDefaultTemplate);
  if (usual == chat.templates.end()) return "";
  std::string behind;
  try {
    behind = ChatTemplate({*usual}, {{"bos_token", chat.tokens.bos_token}, {"eos_token", chat.tokens.eos_token}})
                 .behind_answer();
  } catch (const Error&) {
    return "";
  }
  const size_t begin = behind.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  std::string longest;
  for (const std::string& token : control_tokens(codec))
    if (token.size() > longest.size() && std::string_view(behind).substr(begin).starts_with(token) &&
        token.find_first_not_of(" \t\r\n") != std::string::npos)
      longest = token;
  return longest;
}

std::vector<std::string> chat_problems(const ChatFiles& chat) {
  std::vector<std::string> problems;
  for (const auto& [name, source] : chat.templates) try {
      JinjaTemplate{source};
    } catch (const Error& error) {
      problems.push_back(fmt::format("template {}: {}; a conversation needs another one", name, error.what()));
    }
  return problems;
}

}  // namespace qkv
