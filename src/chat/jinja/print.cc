#include "chat/jinja/print.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/fail.h"

namespace qkv::jinja {
namespace {

void put(MarkedText& out, std::string_view text) { out.append(text, false); }

// Calls f(code point, its bytes, whether they came from data) for each character.
template <class F>
void for_each_character(const MarkedText& text, F&& f) {
  const auto size = static_cast<int32_t>(text.bytes.size());
  auto range = text.data.begin();
  for (int32_t place = 0; place < size;) {
    const int32_t begin = place;
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(text.bytes.data(), place, size, c);
    while (range != text.data.end() && range->end <= static_cast<size_t>(begin)) range++;
    f(c, std::string_view(text.bytes).substr(static_cast<size_t>(begin), static_cast<size_t>(place - begin)),
      range != text.data.end() && range->begin <= static_cast<size_t>(begin));
  }
}

// Whether repr writes the character as it is.
bool is_printable(UChar32 c) {
  if (c == ' ') return true;
  switch (u_charType(c)) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_SURROGATE:
    case U_PRIVATE_USE_CHAR:
    case U_UNASSIGNED:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_SPACE_SEPARATOR:
      return false;
    default:
      return true;
  }
}

std::string python_escape(UChar32 c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  const auto code = static_cast<uint32_t>(c);
  return code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

void append_quoted(MarkedText& out, const MarkedText& text) {
  const bool single = text.bytes.find('\'') != std::string::npos, both = text.bytes.find('"') != std::string::npos;
  const char quote = single && !both ? '"' : '\'';
  put(out, std::string_view(&quote, 1));
  for_each_character(text, [&](UChar32 c, std::string_view bytes, bool is_data) {
    if (c == quote || c == '\\') out.append("\\", is_data);
    out.append(is_printable(c) ? std::string(bytes) : python_escape(c), is_data);
  });
  put(out, std::string_view(&quote, 1));
}

template <class Items, class Append>
void append_list(MarkedText& out, std::string_view open, const Items& items, std::string_view close, Append&& append) {
  put(out, open);
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) put(out, ", ");
    append(item);
  }
  put(out, close);
}

void append_sequence(MarkedText& out, const Sequence& sequence) {
  const auto append = [&](const Value& item) { append_repr(out, item); };
  switch (sequence.kind) {
    case SequenceKind::list:
      return append_list(out, "[", sequence.items, "]", append);
    case SequenceKind::tuple:
      return append_list(out, "(", sequence.items, sequence.items.size() == 1 ? ",)" : ")", append);
    case SequenceKind::view:
      return append_list(out, "dict_view([", sequence.items, "])", append);
    case SequenceKind::range:
      fail("chat template: a range cannot be printed");
    case SequenceKind::iterator:
      return put(out, "<generator object>");
  }
}

std::string json_escape(UChar32 c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      break;
  }
  const auto unit = [](uint32_t code) { return fmt::format("\\u{:04x}", code); };
  if (c < 0x10000) return unit(static_cast<uint32_t>(c));
  return unit(static_cast<uint32_t>(U16_LEAD(c))) + unit(static_cast<uint32_t>(U16_TRAIL(c)));
}

void append_json_text(MarkedText& out, const MarkedText& text, bool ensure_ascii) {
  put(out, "\"");
  for_each_character(text, [&](UChar32 c, std::string_view bytes, bool is_data) {
    const bool escapes = c < 0x20 || c == '"' || c == '\\' || (ensure_ascii && c > 0x7E);
    out.append(escapes ? json_escape(c) : std::string(bytes), is_data);
  });
  put(out, "\"");
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return python_float(value);
}

void append_key(MarkedText& out, const Value& key, bool ensure_ascii) {
  if (const MarkedText* text = text_of(key)) return append_json_text(out, *text, ensure_ascii);
  if (sequence_of(key) || is_undefined(key))
    fail("chat template: keys must be str, int, float, bool or None, not {}", type_name(key));
  put(out, "\"");
  append_json(out, key, {});
  put(out, "\"");
}

// A line break and the indentation of a level, where the style has one.
void append_break(MarkedText& out, const JsonStyle& style, int depth) {
  if (!style.indent) return;
  put(out, "\n");
  for (int i = 0; i < depth; i++) put(out, *style.indent);
}

template <class Items, class Append>
void append_json_items(MarkedText& out, std::string_view brackets, const Items& items, const JsonStyle& style,
                       int depth, Append&& append) {
  put(out, brackets.substr(0, 1));
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) put(out, style.item_separator);
    append_break(out, style, depth + 1);
    append(item);
  }
  if (!first) append_break(out, style, depth);
  put(out, brackets.substr(1));
}

std::vector<const std::pair<Value, Value>*> entries_of(const Dict& dict, bool sorted) {
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (sorted)
    std::ranges::stable_sort(entries, [](const auto* a, const auto* b) { return compare(a->first, b->first) < 0; });
  return entries;
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return fmt::format("{}e{:+03d}", text.substr(0, e), exponent);
  const auto digits = static_cast<int>(e) - (text.starts_with('-') ? 1 : 0);  // with the point, if there is one
  return fmt::format("{:.{}f}", value, std::max(1, std::max(0, digits - 2) - exponent));
}

void append_str(MarkedText& out, const Value& value) {
  if (const MarkedText* text = text_of(value)) return out.append(*text);
  if (!is_undefined(value)) append_repr(out, value);
}

void append_repr(MarkedText& out, const Value& value) {
  if (const MarkedText* text = text_of(value)) return append_quoted(out, *text);
  if (const Sequence* sequence = sequence_of(value)) return append_sequence(out, *sequence);
  if (const Dict* dict = dict_of(value))
    return append_list(out, "{", dict->entries, "}", [&](const auto& entry) {
      append_repr(out, entry.first);
      put(out, ": ");
      append_repr(out, entry.second);
    });
  if (is_undefined(value)) return put(out, "Undefined");
  if (is_none(value)) return put(out, "None");
  if (const auto* flag = std::get_if<bool>(&value)) return put(out, *flag ? "True" : "False");
  if (const auto* integer = std::get_if<int64_t>(&value)) return put(out, std::to_string(*integer));
  if (const auto* number = std::get_if<double>(&value)) return put(out, python_float(*number));
  put(out, fmt::format("<{}>", type_name(value)));
}

MarkedText str_of(const Value& value) {
  MarkedText text;
  append_str(text, value);
  return text;
}

void append_json(MarkedText& out, const Value& value, const JsonStyle& style, int depth) {
  if (const MarkedText* text = text_of(value)) return append_json_text(out, *text, style.ensure_ascii);
  if (const Sequence* sequence = sequence_of(value))
    if (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple)
      return append_json_items(out, "[]", sequence->items, style, depth,
                               [&](const Value& item) { append_json(out, item, style, depth + 1); });
  if (const Dict* dict = dict_of(value))
    return append_json_items(out, "{}", entries_of(*dict, style.sort_keys), style, depth, [&](const auto* entry) {
      append_key(out, entry->first, style.ensure_ascii);
      put(out, style.key_separator);
      append_json(out, entry->second, style, depth + 1);
    });
  if (is_none(value)) return put(out, "null");
  if (const auto* flag = std::get_if<bool>(&value)) return put(out, *flag ? "true" : "false");
  if (const auto* integer = std::get_if<int64_t>(&value)) return put(out, std::to_string(*integer));
  if (const auto* number = std::get_if<double>(&value)) return put(out, json_float(*number));
  fail("chat template: Object of type {} is not JSON serializable", type_name(value));
}

}  // namespace qkv::jinja
