// The body of a request for a completion, of a prompt or of a conversation, for a server with a tiny language model.
// The same conversation in every template.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/json.h"
#include "fuzz/reader.h"
#include "fuzz/served.h"
#include "fuzz/tiny_runs.h"
#include "qkv/chat.h"
#include "tests/support/temp_dir.h"

namespace {

using nlohmann::json;

const qkv::Generator& chat_generator() {
  static const qkv::testing::TempDir directory;
  static std::optional<qkv::Generator> generator;
  if (generator) return *generator;
  qkv::fuzz::must_succeed([] {
    qkv::fuzz::make_tiny_chat(directory / "chat");
    generator.emplace(directory / "chat");
  });
  return *generator;
}

std::string text_of(const json& message, const char* name) {
  const json value = message.is_object() ? message.value(name, json()) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t special_tokens(const std::vector<int32_t>& ids) {
  return std::ranges::count_if(ids, [](int32_t id) { return id >= 257; });
}

// Only the template puts tokens between turns in, whatever the messages contain.
void apply_templates(std::string_view body) {
  const json request = qkv::parse_json(body, "body");
  if (!request.is_object() || !request.value("messages", json()).is_array()) return;
  json messages = json::array(), silent = json::array();
  for (const json& message : request["messages"]) {
    messages.push_back({{"role", text_of(message, "role")}, {"content", text_of(message, "content")}});
    silent.push_back({{"role", text_of(message, "role")}, {"content", ""}});
  }
  for (const std::string name : {"chatml", "llama2", "llama3", "mistral", "zephyr", "plain", "none"})
    qkv::fuzz::attempt([&] {
      const qkv::Chat chat(chat_generator(), name);
      qkv::fuzz::require(special_tokens(chat.prompt(messages.dump())) == special_tokens(chat.prompt(silent.dump())),
                         "a message contains no token that separates turns");
    });
}

}  // namespace

void qkv::fuzz::fuzz_server_completions(std::string_view bytes) {
  serve({"POST", "/v1/completions", kJson}, bytes);
  serve({"POST", "/v1/chat/completions", kJson}, bytes);
  apply_templates(bytes);
}
