#include "io/runs/chat_files.h"

#include <algorithm>
#include <filesystem>

#include "core/fail.h"
#include "core/json.h"
#include "io/runs/run_config.h"

namespace qkv {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20, kMaxTemplates = 64;
constexpr const char* kSuffix = ".jinja";

}  // namespace

void check_template_name(const std::string& name, const std::string& where) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.';
  };
  if (name.empty() || name.size() > 64 || name.starts_with('.') || !std::ranges::all_of(name, is_allowed))
    fail("{}: the name of a chat template must have 1 to 64 letters, digits, \"_\", \"-\" and \".\" (is {})", where,
         excerpt(name));
}

ChatFiles read_chat_files(const RunDirectory& run) {
  ChatFiles chat;
  if (std::filesystem::exists(run.chat())) chat.tokens = read_fields<ChatTokens>(run, run.chat());
  if (std::filesystem::exists(run.chat_template()))
    chat.templates[kDefaultTemplate] = read_file(run.chat_template(), kMaxTemplateBytes);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run.chat_templates(), error)) {
    if (entry.path().extension() != kSuffix) continue;
    const std::string name = entry.path().stem().string();
    check_template_name(name, run.chat_templates());
    if (chat.templates.size() == kMaxTemplates)
      fail("{}: must have at most {} templates", run.chat_templates(), kMaxTemplates);
    chat.templates[name] = read_file(entry.path().string(), kMaxTemplateBytes);
  }
  return chat;
}

void write_chat_templates(const RunDirectory& run, const ChatFiles& chat) {
  for (const auto& [name, text] : chat.templates) {
    if (name == kDefaultTemplate) {
      write_file_atomic(run.chat_template(), text);
      continue;
    }
    make_directory(run.chat_templates());
    write_file_atomic(run.chat_templates() + "/" + name + kSuffix, text);
  }
}

void write_chat_files(const RunDirectory& run, const ChatFiles& chat) {
  if (chat.templates.empty() && chat.tokens == ChatTokens()) return;
  write_fields(run.chat(), chat.tokens);
  write_chat_templates(run, chat);
}

}  // namespace qkv
