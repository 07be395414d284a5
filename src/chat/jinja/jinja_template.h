// A chat template: the part of Jinja that such templates use, with the results of jinja2's immutable sandbox as
// transformers sets it up (trim_blocks, lstrip_blocks, break and continue, tojson, raise_exception, strftime_now).
// A template has no access to files, the network or the environment; it reads the date, if the caller passes it.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/marked_text.h"

namespace qkv {

// A variable of a template. is_trusted: texts in it count as written by the template (the names of control tokens).
struct TemplateVariable {
  std::string name;
  const nlohmann::ordered_json* value;
  bool is_trusted = false;
};

// Immutable; copies share the syntax tree; all methods may be called from many threads.
class JinjaTemplate {
 public:
  // Throws Error, with the line, for what is not such a template.
  explicit JinjaTemplate(std::string_view source);

  // Returns the text of the template for these variables. Members `role` of data count as written by the template if
  // they name a usual role. now: seconds since 1970. Throws Error with the text of raise_exception, for what Jinja
  // refuses, and if the template takes more steps or memory than the limits allow.
  MarkedText render(const std::vector<TemplateVariable>& variables, std::time_t now) const;

  const std::string& source() const;

 private:
  struct Tree;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace qkv
