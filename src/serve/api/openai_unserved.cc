#include "serve/api/openai_unserved.h"

#include <algorithm>
#include <array>

#include "serve/http/http_reply.h"

namespace qkv {
namespace {

using nlohmann::json;

// The name of a member, and the number without effect.
struct Unserved {
  std::string_view name;
  double neutral = 0;
};

// null, false and what is empty have no effect either.
constexpr std::array kUnserved = {
    // constraints on the form of the text
    Unserved{"grammar"}, Unserved{"json_schema"}, Unserved{"ebnf"}, Unserved{"regex"}, Unserved{"structural_tag"},
    Unserved{"structured_outputs"}, Unserved{"guided_json"}, Unserved{"guided_regex"}, Unserved{"guided_choice"},
    Unserved{"guided_grammar"}, Unserved{"guided_json_object"}, Unserved{"guided_decoding"},
    // tokens
    Unserved{"min_tokens"}, Unserved{"ignore_eos"}, Unserved{"stop_token_ids"}, Unserved{"bad_words"},
    Unserved{"bad_words_ids"}, Unserved{"allowed_token_ids"}, Unserved{"include_stop_str_in_output"},
    Unserved{"logits_processors"}, Unserved{"truncate_prompt_tokens"},
    // other ways to search and to sample
    Unserved{"use_beam_search"}, Unserved{"beam_width", 1}, Unserved{"mirostat"}, Unserved{"dynatemp_range"},
    Unserved{"xtc_probability"}, Unserved{"dry_multiplier"}, Unserved{"tfs_z", 1}, Unserved{"top_a"},
    Unserved{"top_n_sigma", -1}, Unserved{"epsilon_cutoff"}, Unserved{"eta_cutoff"}, Unserved{"repeat_penalty", 1},
    Unserved{"n_indent"},
    // input and output
    Unserved{"prompt_logprobs"}, Unserved{"n_probs"}, Unserved{"prompt_embeds"}, Unserved{"lora"}, Unserved{"audio"},
    Unserved{"web_search_options"}, Unserved{"input_prefix"}, Unserved{"input_suffix"}, Unserved{"input_extra"}};

bool has_effect(const json& value, double neutral) {
  if (value.is_null() || value == false) return false;
  if (value.is_number()) return value.get<double>() != neutral;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_boolean() || !value.empty();
}

}  // namespace

void refuse_unserved_members(RequestObject& object) {
  for (const auto& [name, neutral] : kUnserved)
    if (has_effect(object.get(name), neutral)) refuse_field(name, "is not supported");
  if (!object.flag("skip_special_tokens", true)) refuse_field("skip_special_tokens", "must be true");
}

}  // namespace qkv
