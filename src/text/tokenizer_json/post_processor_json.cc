#include "text/tokenizer_json/post_processor_json.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "text/tokenizer_json/json_object.h"

namespace qkv {
namespace {

using nlohmann::json;

// A token of the post-processor: one at most on each side of the text.
void put_around(const json& id, const std::string& where, bool behind, TokenizerSpec& spec) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
    fail("{} is {}, expected an id", where, JsonObject::describe(id));
  std::optional<int32_t>& side = behind ? spec.after : spec.before;
  if (side) fail("{}: two tokens {} a text, expected one at most", where, behind ? "behind" : "before");
  side = id.get<int32_t>();
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [0]}}}
void read_template(const json& value, const std::string& where, TokenizerSpec& spec) {
  const JsonObject object(value, where, {"type", "single", "pair", "special_tokens"});
  const json* tokens = object.find("special_tokens");
  bool behind = false;
  for (const json& part : object.array("single")) {
    const JsonObject either(part, object.at("single"), {"SpecialToken", "Sequence"});
    if (either.find("Sequence")) {
      if (behind) fail("{}: two times the text", either.where());
      behind = true;
      continue;
    }
    if (!either.find("SpecialToken")) either.wrong("SpecialToken", "an object");
    const std::string name =
        JsonObject(*either.find("SpecialToken"), either.at("SpecialToken"), {"id", "type_id"}).text("id");
    const auto token = tokens && tokens->is_object() ? tokens->find(name) : json::const_iterator();
    if (!tokens || !tokens->is_object() || token == tokens->end())
      fail("{}: {} is not there", object.at("special_tokens"), excerpt(name));
    for (const json& id : JsonObject(*token, object.at("special_tokens"), {"id", "ids", "tokens"}).array("ids"))
      put_around(id, object.at("special_tokens"), behind, spec);
  }
  if (!behind) fail("{}: without the text", object.at("single"));
}

}  // namespace

void read_post_processor(const json* value, const std::string& where, TokenizerSpec& spec) {
  for (const auto& [step, place] : steps_of(value, where, "processors")) {
    const std::string type = type_of(step);
    if (type == "ByteLevel") continue;  // changes where tokens are said to begin, not which they are
    if (type == "TemplateProcessing") {
      read_template(*step, place, spec);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      const JsonObject object(*step, place, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      for (const char* name : {"cls", "sep"}) {
        const json& pair = object.array(name);  // the token and its id
        if (pair.size() != 2) object.wrong(name, "a token and its id");
        put_around(pair[1], object.at(name), name == std::string_view("sep"), spec);
      }
    } else {
      fail("{}: type is {}, expected TemplateProcessing, RobertaProcessing, BertProcessing or ByteLevel", place,
           excerpt(type));
    }
  }
}

}  // namespace qkv
