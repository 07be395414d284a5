// Filters that give a text or a number.
#include "chat/jinja/text_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "chat/jinja/characters.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_parts.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

MarkedText printed(Renderer& r, const Value& value) {
  r.budget().work(2 * extent_of(value).bytes);
  return str_of(value);
}

template <LetterCase kCase>
Value filter_case(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "filter", {});
  return r.text(cased(printed(r, self), kCase));
}

// Jinja's title: words begin behind white space, hyphens and opening brackets.
Value filter_title(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "title", {});
  const MarkedText text = printed(r, self);
  std::string result;
  for (size_t place = 0; place < text.size();) {
    const size_t begin = place;
    const auto is_gap = [&](size_t at) {
      const int32_t c = next_character(text.bytes, at);
      return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    const bool gap = is_gap(begin);
    while (place < text.size() && is_gap(place) == gap) next_character(text.bytes, place);
    const std::string_view part = std::string_view(text.bytes).substr(begin, place - begin);
    size_t first = 0;
    next_character(part, first);
    result += with_case(part.substr(0, first), LetterCase::upper) + with_case(part.substr(first), LetterCase::lower);
  }
  return r.text(text.has_data() ? MarkedText::of_data(std::move(result)) : MarkedText::of_template(std::move(result)));
}

Value filter_trim(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "trim", {"chars"});
  const bool has_characters = p.find(0) && !is_none(*p.find(0));
  return r.text(stripped(printed(r, self), true, true, has_characters ? &p.marked(0) : nullptr));
}

Value filter_string(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "string", {});
  return text_of(self) ? self : r.text(printed(r, self));
}

Value filter_replace(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "replace", {"old", "new", "count"});
  return r.text(replaced(r, printed(r, self), printed(r, p.get(0)), printed(r, p.get(1)), p.integer(2, -1)));
}

Value filter_indent(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "indent", {"width", "first", "blank"});
  const bool is_text = p.find(0) && text_of(*p.find(0));
  const MarkedText gap = is_text ? p.marked(0)
                                 : MarkedText::of_template(std::string(
                                       static_cast<size_t>(std::clamp<int64_t>(p.integer(0, 4), 0, 1024)), ' '));
  MarkedText text = printed(r, self);
  text.append("\n", false);
  const std::vector<ByteRange> lines = lines_of(text.bytes, false);
  const Charge room(&r.budget(), lines.size() * gap.size());
  MarkedText result;
  for (size_t i = 0; i < lines.size(); i++) {
    if (i > 0) result.append("\n", false);
    const bool is_blank = lines[i].begin == lines[i].end;
    if (i == 0 ? p.flag(1) : !is_blank || p.flag(2)) result.append(gap);
    result.append(text, lines[i].begin, lines[i].end);
  }
  return r.text(std::move(result));
}

Value filter_escape(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "escape", {});
  static constexpr std::pair<std::string_view, std::string_view> kReferences[] = {
      {"&", "&amp;"}, {">", "&gt;"}, {"<", "&lt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  MarkedText text = printed(r, self);
  for (const auto& [character, reference] : kReferences)
    text = replaced(r, text, MarkedText::of_template(std::string(character)),
                    MarkedText::of_template(std::string(reference)), -1);
  return r.text(std::move(text));
}

Value filter_center(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "center", {"width"});
  const Value text = r.text(printed(r, self));
  return find_text_method("center")->call(r, text, {.positional = {p.integer(0, 80)}});
}

Value filter_format(Renderer& r, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("chat template: format takes no keyword arguments");
  return format_text(r, printed(r, self), arguments.positional);
}

// Counts runs of letters, digits and underscores.
Value filter_wordcount(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "wordcount", {});
  const MarkedText text = printed(r, self);
  const Function* is_word = find_text_method("isalnum");
  int64_t words = 0;
  bool inside = false;
  for (size_t place = 0; place < text.size();) {
    const size_t begin = place;
    const bool underscore = next_character(text.bytes, place) == '_';
    r.budget().step();
    const bool word = underscore || is_true(is_word->call(r, r.text(text.part(begin, place)), {}));
    words += word && !inside;
    inside = word;
  }
  return words;
}

Value filter_truncate(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "truncate", {"length", "killwords", "end", "leeway"});
  const MarkedText text = printed(r, self);
  const std::string end = p.text(2, "...");
  const std::vector<size_t> places = character_places(text.bytes);
  const int64_t length = p.integer(0, 255), added = std::ssize(character_places(end)) - 1;
  if (length < added) fail("chat template: truncate: length must be at least {} (is {})", added, length);
  if (std::ssize(places) - 1 <= length + p.integer(3, 5)) return r.text(text);
  size_t cut = places[static_cast<size_t>(length - added)];
  if (!p.flag(1)) cut = std::min(text.bytes.rfind(' ', cut == 0 ? 0 : cut - 1), cut);
  MarkedText result = text.part(0, cut);
  result.append(end, false);
  return r.text(std::move(result));
}

Value filter_tojson(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{p.flag(0), p.flag(3), {}};
  if (p.find(1) && !is_none(*p.find(1))) {
    style.indent = text_of(*p.find(1))
                       ? p.text(1)
                       : std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(1, 0), 0, 64)), ' ');
    style.item_separator = ",";
  }
  if (p.find(2) && !is_none(*p.find(2))) {
    const SequencePtr pair = r.iterate(*p.find(2));
    if (pair->items.size() != 2 || !text_of(pair->items[0]) || !text_of(pair->items[1]))
      fail("chat template: tojson: separators must be two texts");
    style.item_separator = text_of(pair->items[0])->bytes;
    style.key_separator = text_of(pair->items[1])->bytes;
  }
  const size_t bytes = extent_of(self).bytes;
  r.budget().work(2 * bytes);
  const Charge room(&r.budget(), bytes + (style.indent ? bytes / 8 * (style.indent->size() + 1) : 0));
  MarkedText text;
  append_json(text, self, style);
  return r.text(std::move(text));
}

// Reads a text as Python's int() does, with digits of base 2 to 36.
std::optional<int64_t> read_integer(std::string_view text, int base) {
  text = strip_right(strip_left(text));
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> read_number(std::string_view text) {
  const std::string trimmed(strip_right(strip_left(text)));
  if (trimmed.empty() || trimmed.find_first_of("xXpP") != std::string::npos) return {};
  char* end = nullptr;
  const double value = std::strtod(trimmed.c_str(), &end);
  return end == trimmed.c_str() + trimmed.size() ? std::optional(value) : std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const MarkedText* text = text_of(value)) return read_number(text->bytes);
  return number_of(value);
}

Value filter_int(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "int", {"default", "base"});
  check_defined(self);
  if (const auto integer = integer_of(self)) return *integer;
  if (const MarkedText* text = text_of(self))
    if (const auto integer = read_integer(text->bytes, static_cast<int>(std::clamp<int64_t>(p.integer(1, 10), 2, 36))))
      return *integer;
  const auto number = as_number(self);
  if (!number || !(std::abs(*number) < 0x1p63)) return p.find(0) ? *p.find(0) : int64_t{0};
  return static_cast<int64_t>(*number);
}

Value filter_float(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "float", {"default"});
  check_defined(self);
  if (const auto number = as_number(self)) return *number;
  return p.find(0) ? *p.find(0) : 0.0;
}

Value filter_abs(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "abs", {});
  check_defined(self);
  if (const auto integer = integer_of(self)) return *integer < 0 ? negate(*integer) : Value(*integer);
  if (const auto number = number_of(self)) return std::abs(*number);
  fail("chat template: bad operand type for abs(): '{}'", type_name(self));
}

Value filter_round(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "round", {"precision", "method"});
  const std::string method = p.text(1, "common");
  const int64_t precision = std::clamp<int64_t>(p.integer(0, 0), -300, 300);
  const auto number = number_of(self);
  check_defined(self);
  if (!number) fail("chat template: type {} doesn't define __round__ method", type_name(self));
  if (method != "common" && method != "ceil" && method != "floor")
    fail("chat template: round: method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method != "common") return (method == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale;
  if (integer_of(self) && precision >= 0) return *integer_of(self);
  if (precision < 0) {
    const double rounded = std::nearbyint(*number * scale) / scale;
    return integer_of(self) ? Value(static_cast<int64_t>(rounded)) : Value(rounded);
  }
  return std::strtod(fmt::format("{:.{}f}", *number, static_cast<int>(precision)).c_str(), nullptr);
}

constexpr Function kFilters[] = {{"abs", filter_abs},
                                 {"capitalize", filter_case<LetterCase::capital>},
                                 {"center", filter_center},
                                 {"e", filter_escape},
                                 {"escape", filter_escape},
                                 {"float", filter_float},
                                 {"forceescape", filter_escape},
                                 {"format", filter_format},
                                 {"indent", filter_indent},
                                 {"int", filter_int},
                                 {"lower", filter_case<LetterCase::lower>},
                                 {"replace", filter_replace},
                                 {"round", filter_round},
                                 {"safe", filter_string},
                                 {"string", filter_string},
                                 {"title", filter_title},
                                 {"tojson", filter_tojson},
                                 {"trim", filter_trim},
                                 {"truncate", filter_truncate},
                                 {"upper", filter_case<LetterCase::upper>},
                                 {"wordcount", filter_wordcount}};

}  // namespace

const Function* find_text_filter(std::string_view name) { return find_in(kFilters, name); }

}  // namespace qkv::jinja
