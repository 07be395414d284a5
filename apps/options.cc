#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "help.h"
#include "qkv/decoding.h"

namespace {

constexpr const char* kBoolean = "BOOLEAN:{true,false}";  // type and words, as CLI11 writes those of CLI::IsMember

// The range in words; "" if every number is accepted.
std::string accepted_by(const qkv::Range& range) {
  const bool bounded = std::isfinite(range.min) || std::isfinite(range.max);
  return bounded ? qkv::to_string(range) : "";
}

}  // namespace

CLI::Validator in_range(const qkv::Range& range) {
  const auto error = [range](const std::string& text) {
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value) || range.contains(value)) return std::string();
    return fmt::format("must be {} (is {})", qkv::to_string(range), text);
  };
  return CLI::Validator(error, "");
}

void require_sampling(CLI::App& command) {
  qkv::SamplingOptions sampling;
  visit_fields(sampling, [&](std::string_view name, auto&, const qkv::Field& field) {
    if (field.group == "sampling") command.get_option(flag_of(name))->needs(command.get_option("--sampling"));
  });
}

std::string flag_of(std::string_view name) {
  if (name == "source_language") return "--from";
  if (name == "target_language") return "--to";
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

bool OptionAdder::offers(std::string_view name, const qkv::Field& field) const {
  return field.visibility != qkv::Visibility::internal && std::ranges::find(left_out_, name) == left_out_.end();
}

void OptionAdder::add(CLI::Option* option, const qkv::Field& field, const std::string& accepted) const {
  describe(*option, {std::string(field.help), accepted, option->get_default_str(), std::string(field.group),
                     field.visibility == qkv::Visibility::common});
  option->default_str("");
}

template <class Number>
void OptionAdder::add_number(std::string_view name, Number& member, const qkv::Field& field) {
  if (!offers(name, field)) return;
  CLI::Option* option = command_.add_option(flag_of(name), member);
  qkv::Range range = field.range;
  if constexpr (std::is_unsigned_v<Number>) range.min = std::max(range.min, 0.0);  // -1 would become 2^64 - 1
  add(option->check(in_range(range))->capture_default_str(), field, accepted_by(range));
}

void OptionAdder::operator()(std::string_view name, bool& member, const qkv::Field& field) {
  if (!offers(name, field)) return;
  if (member)
    add(command_.add_option(flag_of(name), member)->default_str("true")->type_name(kBoolean), field, "true or false");
  else
    add(command_.add_flag(flag_of(name), member), field);
}

void OptionAdder::operator()(std::string_view name, int64_t& member, const qkv::Field& field) {
  add_number(name, member, field);
}

void OptionAdder::operator()(std::string_view name, uint64_t& member, const qkv::Field& field) {
  add_number(name, member, field);
}

void OptionAdder::operator()(std::string_view name, double& member, const qkv::Field& field) {
  add_number(name, member, field);
}

void OptionAdder::operator()(std::string_view name, std::string& member, const qkv::Field& field) {
  if (offers(name, field)) add(command_.add_option(flag_of(name), member), field);
}

void OptionAdder::operator()(std::string_view name, std::vector<std::string>& member, const qkv::Field& field) {
  if (!offers(name, field)) return;
  CLI::Option* option = command_.add_option(flag_of(name), member)->take_all()->expected(1);
  add(option, field, "may be repeated");
}

void OptionAdder::operator()(std::string_view name, std::optional<bool>& member, const qkv::Field& field) {
  if (!offers(name, field)) return;
  const std::string flag = flag_of(name);
  const auto set = [&member](int64_t count) { member = count > 0; };
  add(command_.add_flag_function(flag + ",!--no-" + flag.substr(2), set), field);
}

void OptionAdder::operator()(std::string_view name, std::optional<int64_t>& member, const qkv::Field& field) {
  if (offers(name, field))
    add(command_.add_option(flag_of(name), member)->check(in_range(field.range)), field, accepted_by(field.range));
}

void OptionAdder::operator()(std::string_view name, std::optional<std::string>& member, const qkv::Field& field) {
  if (!offers(name, field)) return;
  const auto set = [&member](const std::string& text) { member = text; };  // also "", which CLI11 takes as not set
  add(command_.add_option_function<std::string>(flag_of(name), set), field);
}

void OptionAdder::operator()(std::string_view name, std::optional<std::vector<std::string>>& member,
                             const qkv::Field& field) {
  if (!offers(name, field)) return;
  const auto set = [&member](const std::vector<std::string>& texts) { member = texts; };
  add(command_.add_option_function<std::vector<std::string>>(flag_of(name), set)->take_all()->expected(1), field);
}
