#include "qkv/chat.h"

#include <algorithm>
#include <filesystem>

#include "chat/chat_template.h"
#include "core/fail.h"
#include "core/json.h"
#include "decode/generation/chat_encoder.h"
#include "decode/generation/generator_model.h"

namespace qkv {
namespace {

// The tokens that templates may write as variables.
std::map<std::string, std::string> variables_of(const ChatTokens& tokens) {
  return {{"bos_token", tokens.bos_token},  {"eos_token", tokens.eos_token}, {"unk_token", tokens.unk_token},
          {"sep_token", tokens.sep_token},  {"pad_token", tokens.pad_token}, {"cls_token", tokens.cls_token},
          {"mask_token", tokens.mask_token}};
}

bool has_names(TextUnit unit) { return unit != TextUnit::characters && unit != TextUnit::bytes; }

// The tokens of a run. One without chat.json has those that generation uses.
ChatTokens tokens_of(const LanguageRun& run) {
  ChatTokens tokens = run.chat.tokens;
  if (!has_names(run.codec.unit())) return tokens;
  if (tokens.bos_token.empty() && run.ends.starts_prompts) tokens.bos_token = run.codec.piece(run.ends.start);
  if (tokens.eos_token.empty()) tokens.eos_token = run.codec.piece(run.ends.ends.front());
  return tokens;
}

}  // namespace

struct Chat::State {
  const Generator::Model& model;
  ChatTemplate chat_template;
  ChatEncoder encoder;
  std::string stop;

  State(const Generator::Model& m, ChatTemplate t, const ChatTokens& tokens, std::string stop_text)
      : model(m),
        chat_template(std::move(t)),
        encoder(m.run.codec, tokens, chat_template.sources()),
        stop(std::move(stop_text)) {}
};

namespace {

// A built-in template, with tokens that the model must have.
ChatTemplate built_in(const BuiltInTemplate& found, const LanguageRun& run, ChatTokens tokens) {
  for (const char* token : found.tokens)
    if (!has_names(run.codec.unit()) || !run.codec.id(token))
      fail("chat_template {}: the model has no token {}", found.name, token);
  tokens.bos_token = run.ends.starts_prompts && has_names(run.codec.unit()) ? run.codec.piece(run.ends.start) : "";
  const std::string name = found.name;
  if (name == "llama2" || name == "mistral") tokens.bos_token = "<s>";
  if (name == "llama2" || name == "mistral" || name == "zephyr") tokens.eos_token = "</s>";
  return ChatTemplate({{kDefaultTemplate, found.source}}, variables_of(tokens));
}

}  // namespace

std::unique_ptr<const Chat::State> Chat::state_of(const Generator::Model& model, const std::string& chat_template) {
  const LanguageRun& run = model.run;
  const ChatTokens tokens = tokens_of(run);
  const auto state = [&](ChatTemplate chosen, const char* stop = "") {
    return std::make_unique<const State>(model, std::move(chosen), tokens, stop);
  };
  if (chat_template.empty()) {
    if (run.chat.templates.empty())
      fail("chat_template: the model has none of its own (choose from {})", built_in_template_names());
    return state(ChatTemplate(run.chat.templates, variables_of(tokens)));
  }
  if (const auto own = run.chat.templates.find(chat_template); own != run.chat.templates.end())
    return state(ChatTemplate({{kDefaultTemplate, own->second}}, variables_of(tokens)));
  if (const BuiltInTemplate* found = find_built_in_template(chat_template))
    return state(built_in(*found, run, tokens), found->stop);
  if (chat_template.find('{') != std::string::npos)
    return state(ChatTemplate({{kDefaultTemplate, chat_template}}, variables_of(tokens)));
  std::string names = built_in_template_names();
  for (const auto& [name, source] : run.chat.templates) names += ", " + name;
  fail("chat_template: unknown name {} (choose from {})", excerpt(chat_template), names);
}

Chat::Chat(const Generator& generator, const std::string& chat_template)
    : state_(state_of(*generator.model_, chat_template)) {}
Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;

std::string Chat::text(const std::string& messages, const ChatOptions& options) const {
  return state_->chat_template.render(messages, options).bytes;
}

std::vector<int32_t> Chat::prompt(const std::string& messages, const ChatOptions& options) const {
  const LanguageRun& run = state_->model.run;
  std::vector<int32_t> ids = state_->encoder.encode(state_->chat_template.render(messages, options));
  return has_names(run.codec.unit()) ? ids : run.ends.beginning(ids);  // no template can write the start token
}

Generation Chat::answer(const std::string& messages, const GenerateOptions& generate,
                        const ChatOptions& options) const {
  GenerateOptions with_stop = generate;
  if (!state_->stop.empty()) with_stop.stop.push_back(state_->stop);
  return state_->model.continue_tokens(prompt(messages, options), with_stop);
}

std::string Chat::stop() const { return state_->stop; }
bool Chat::mentions(std::string_view word) const { return state_->chat_template.mentions(word); }

bool has_chat_template(const std::string& run_directory) {
  return !read_chat_files(RunDirectory(run_directory)).templates.empty();
}

}  // namespace qkv
