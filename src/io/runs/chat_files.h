// The chat templates of a language model's run, and the special tokens of conversations and prompts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/runs/run_directory.h"

namespace qkv {

// chat.json of a run. Spellings of tokens; "" for none.
struct ChatTokens {
  std::string bos_token = "", eos_token = "", unk_token = "", sep_token = "", pad_token = "", cls_token = "",
              mask_token = "";
  std::vector<std::string> strip_left = {}, strip_right = {};  // tokens that take the white space next to them
  bool space_after_tokens = true, starts_prompts = true;

  bool operator==(const ChatTokens&) const = default;
};

template <class Visitor>
void visit_fields(ChatTokens& c, Visitor&& visit) {
  visit("bos_token", c.bos_token, "token that begins a text; empty: none");
  visit("eos_token", c.eos_token, "token that ends a text; empty: none");
  visit("unk_token", c.unk_token, "token of unknown text; empty: none");
  visit("sep_token", c.sep_token, "token between texts; empty: none");
  visit("pad_token", c.pad_token, "token of padding; empty: none");
  visit("cls_token", c.cls_token, "token of a classifier; empty: none");
  visit("mask_token", c.mask_token, "token of a mask; empty: none");
  visit("strip_left", c.strip_left, "tokens that take the white space before them");
  visit("strip_right", c.strip_right, "tokens that take the white space behind them");
  visit("space_after_tokens", c.space_after_tokens,
        "whether a tokenizer that puts a space before a text does so behind each control token as well");
  visit("starts_prompts", c.starts_prompts,
        "whether the start token precedes a prompt that is text, for unit pieces; elsewhere the tokenizer says so");
}

struct ChatFiles {
  std::map<std::string, std::string> templates = {};  // by name; "default" is the usual one; none: no chat template
  ChatTokens tokens = {};

  bool operator==(const ChatFiles&) const = default;
};

constexpr const char* kDefaultTemplate = "default";

// Throws Error for a name that cannot be part of a file's: other than letters, digits, "_", "-" and ".".
void check_template_name(const std::string& name, const std::string& where);

// Writes chat_template.jinja and additional_chat_templates/NAME.jinja, which transformers reads as well.
void write_chat_templates(const RunDirectory& run, const ChatFiles& chat);

// Read and write chat.json, chat_template.jinja and additional_chat_templates/NAME.jinja. A run without templates has
// none of these files. Throw Error, naming the file.
ChatFiles read_chat_files(const RunDirectory& run);
void write_chat_files(const RunDirectory& run, const ChatFiles& chat);

}  // namespace qkv
