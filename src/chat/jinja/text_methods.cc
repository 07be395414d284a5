// The methods of Python's str.
#include <unicode/uchar.h>

#include <algorithm>

#include "chat/jinja/characters.h"
#include "chat/jinja/functions.h"
#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "chat/jinja/text_parts.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

const MarkedText& self_text(const Value& self) { return *text_of(self); }

template <LetterCase kCase>
Value call_case(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "str method", {});
  return r.text(cased(self_text(self), kCase));
}

template <bool kLeft, bool kRight>
Value call_strip(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "strip", {"chars"});
  const bool has_characters = p.find(0) && !is_none(*p.find(0));
  return r.text(stripped(self_text(self), kLeft, kRight, has_characters ? &p.marked(0) : nullptr));
}

template <bool kFromRight>
Value call_split(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "split", {"sep", "maxsplit"});
  const bool has_separator = p.find(0) && !is_none(*p.find(0));
  const int64_t most = p.integer(1, -1);
  const MarkedText& text = self_text(self);
  if (has_separator && p.marked(0).bytes.empty()) fail("chat template: empty separator");
  const std::vector<ByteRange> parts = has_separator ? split_at(text.bytes, p.marked(0).bytes, most, kFromRight)
                                                     : split_at_space(text.bytes, most, kFromRight);
  return texts_of(r, text, parts);
}

Value call_splitlines(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "splitlines", {"keepends"});
  return texts_of(r, self_text(self), lines_of(self_text(self).bytes, p.flag(0)));
}

template <bool kAtEnd>
Value call_partition(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "partition", {"sep"});
  const MarkedText &text = self_text(self), &separator = p.marked(0);
  if (separator.bytes.empty()) fail("chat template: empty separator");
  const size_t place = kAtEnd ? text.bytes.rfind(separator.bytes) : text.bytes.find(separator.bytes);
  std::vector<Value> parts;
  if (place == std::string::npos)
    parts =
        kAtEnd ? std::vector<Value>{r.text(""), r.text(""), self} : std::vector<Value>{self, r.text(""), r.text("")};
  else
    parts = {r.text(text.part(0, place)), r.text(text.part(place, place + separator.size())),
             r.text(text.part(place + separator.size(), text.size()))};
  return r.sequence(SequenceKind::tuple, std::move(parts));
}

// The bytes of the part of a text that the parameters `first` and the next one choose, by characters.
ByteRange chosen_part(const MarkedText& text, const Parameters& p, size_t first) {
  if (!p.find(first) && !p.find(first + 1)) return {0, text.size()};
  const std::vector<size_t> places = character_places(text.bytes);
  const int64_t size = std::ssize(places) - 1;
  const auto at = [&](int64_t i) {
    return places[static_cast<size_t>(std::clamp<int64_t>(i < 0 ? i + size : i, 0, size))];
  };
  const size_t begin = at(p.integer(first, 0)), end = at(p.integer(first + 1, size));
  return {begin, std::max(begin, end)};
}

template <bool kAtEnd>
Value call_starts(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, kAtEnd ? "endswith" : "startswith", {"affix", "start", "end"});
  const ByteRange part = chosen_part(self_text(self), p, 1);
  const std::string_view text = std::string_view(self_text(self).bytes).substr(part.begin, part.end - part.begin);
  const auto matches = [&](const Value& affix) {
    const MarkedText* wanted = text_of(affix);
    if (!wanted)
      fail("chat template: {} needs a str or a tuple of str, not {}", kAtEnd ? "endswith" : "startswith",
           type_name(affix));
    return kAtEnd ? text.ends_with(wanted->bytes) : text.starts_with(wanted->bytes);
  };
  const Sequence* several = sequence_of(p.get(0));
  if (several && several->kind == SequenceKind::tuple) return std::ranges::any_of(several->items, matches);
  return matches(p.get(0));
}

template <bool kAtEnd, bool kFails>
Value call_find(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, kFails ? "index" : "find", {"sub", "start", "end"});
  const ByteRange part = chosen_part(self_text(self), p, 1);
  const std::string_view text = std::string_view(self_text(self).bytes).substr(0, part.end);
  const std::string& wanted = p.marked(0).bytes;
  size_t place = kAtEnd ? text.rfind(wanted) : text.find(wanted, part.begin);
  if (place != std::string_view::npos && place < part.begin) place = std::string_view::npos;
  if (place == std::string_view::npos && kFails) fail("chat template: substring not found");
  if (place == std::string_view::npos) return int64_t{-1};
  return std::ssize(character_places(text.substr(0, place))) - 1;
}

Value call_count(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "count", {"sub", "start", "end"});
  const ByteRange part = chosen_part(self_text(self), p, 1);
  const std::string_view text = std::string_view(self_text(self).bytes).substr(part.begin, part.end - part.begin);
  const std::string& wanted = p.marked(0).bytes;
  if (wanted.empty()) return std::ssize(character_places(text));
  return std::ssize(split_at(text, wanted, -1, false)) - 1;
}

Value call_replace(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "replace", {"old", "new", "count"});
  return r.text(replaced(r, self_text(self), p.marked(0), p.marked(1), p.integer(2, -1)));
}

Value call_join(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "join", {"iterable"});
  const SequencePtr items = r.iterate(p.get(0));
  MarkedText result;
  for (size_t i = 0; i < items->items.size(); i++) {
    const MarkedText* item = text_of(items->items[i]);
    if (!item) fail("chat template: sequence item {}: expected str instance, {} found", i, type_name(items->items[i]));
    if (i > 0) result.append(self_text(self));
    result.append(*item);
    r.budget().work(item->size() + 16);
  }
  return r.text(std::move(result));
}

template <bool (*kTest)(int32_t)>
Value call_all(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "str method", {});
  const std::string& text = self_text(self).bytes;
  for (size_t place = 0; place < text.size();)
    if (!kTest(next_character(text, place))) return false;
  return !text.empty();
}

bool is_letter(int32_t c) { return u_isalpha(c); }
bool is_decimal(int32_t c) { return u_charType(c) == U_DECIMAL_DIGIT_NUMBER; }
bool is_digit_character(int32_t c) {
  return is_decimal(c) || u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) == U_NT_DIGIT;
}
bool is_numeric(int32_t c) { return u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) != U_NT_NONE; }
bool is_letter_or_digit(int32_t c) { return is_letter(c) || is_numeric(c); }

template <bool kUpper>
Value call_is_case(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "str method", {});
  return has_case(self_text(self).bytes, kUpper);
}

template <bool kAtEnd>
Value call_remove(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, kAtEnd ? "removesuffix" : "removeprefix", {"affix"});
  const MarkedText& text = self_text(self);
  const std::string& affix = p.marked(0).bytes;
  if (kAtEnd && text.bytes.ends_with(affix)) return r.text(text.part(0, text.size() - affix.size()));
  if (!kAtEnd && text.bytes.starts_with(affix)) return r.text(text.part(affix.size(), text.size()));
  return self;
}

// Where the padding of a text that is too short goes.
enum class Side { left, right, both };

template <Side kSide>
Value call_justify(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "str method", {"width", "fillchar"});
  const std::string fill = p.text(1, " ");
  if (std::ssize(character_places(fill)) != 2) fail("chat template: the fill character must be one character");
  p.get(0);
  const int64_t width = p.integer(0, 0), missing = width - std::ssize(character_places(self_text(self).bytes)) + 1;
  if (missing <= 0) return self;
  const int64_t left = kSide == Side::left ? missing : kSide == Side::right ? 0 : missing / 2 + (missing & width & 1);
  return r.text(padded(r, self_text(self), fill, left, missing - left));
}

Value call_zfill(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "zfill", {"width"});
  p.get(0);
  const MarkedText& text = self_text(self);
  const int64_t missing = p.integer(0, 0) - std::ssize(character_places(text.bytes)) + 1;
  if (missing <= 0) return self;
  const size_t sign = text.bytes.starts_with('-') || text.bytes.starts_with('+') ? 1 : 0;
  MarkedText result = text.part(0, sign);
  result.append(padded(r, text.part(sign, text.size()), "0", missing, 0));
  return r.text(std::move(result));
}

// The fields {}, {0} and {name}, without formats.
Value call_format(Renderer& r, const Value& self, const Arguments& arguments) {
  const MarkedText& format = self_text(self);
  MarkedText result;
  size_t next = 0;
  for (size_t place = 0; place < format.size();) {
    const size_t brace = std::min(format.bytes.find_first_of("{}", place), format.size());
    result.append(format, place, brace);
    if (brace == format.size()) break;
    place = brace + 2;
    if (brace + 1 < format.size() && format.bytes[brace + 1] == format.bytes[brace]) {
      result.append(format, brace, brace + 1);
      continue;
    }
    const size_t end = format.bytes.find('}', brace);
    if (format.bytes[brace] == '}' || end == std::string::npos)
      fail("chat template: a brace of format() has no partner");
    place = end + 1;
    const std::string name = format.bytes.substr(brace + 1, end - brace - 1);
    const auto named = std::ranges::find(arguments.named, name, [](const auto& argument) { return argument.first; });
    const Value* value = named != arguments.named.end() ? &named->second : nullptr;
    if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 4) {
      const size_t i = name.empty() ? next++ : std::stoul(name);
      value = i < arguments.positional.size() ? &arguments.positional[i] : nullptr;
    }
    if (!value) fail("chat template: format() has no argument for {{{}}}", name);
    r.budget().work(extent_of(*value).bytes);
    append_str(result, *value);
  }
  return r.text(std::move(result));
}

constexpr Function kTextMethods[] = {{"capitalize", call_case<LetterCase::capital>},
                                     {"casefold", call_case<LetterCase::lower>},
                                     {"center", call_justify<Side::both>},
                                     {"count", call_count},
                                     {"endswith", call_starts<true>},
                                     {"find", call_find<false, false>},
                                     {"format", call_format},
                                     {"index", call_find<false, true>},
                                     {"isalnum", call_all<is_letter_or_digit>},
                                     {"isalpha", call_all<is_letter>},
                                     {"isdecimal", call_all<is_decimal>},
                                     {"isdigit", call_all<is_digit_character>},
                                     {"islower", call_is_case<false>},
                                     {"isnumeric", call_all<is_numeric>},
                                     {"isspace", call_all<is_space>},
                                     {"isupper", call_is_case<true>},
                                     {"join", call_join},
                                     {"ljust", call_justify<Side::right>},
                                     {"lower", call_case<LetterCase::lower>},
                                     {"lstrip", call_strip<true, false>},
                                     {"partition", call_partition<false>},
                                     {"removeprefix", call_remove<false>},
                                     {"removesuffix", call_remove<true>},
                                     {"replace", call_replace},
                                     {"rfind", call_find<true, false>},
                                     {"rindex", call_find<true, true>},
                                     {"rjust", call_justify<Side::left>},
                                     {"rpartition", call_partition<true>},
                                     {"rsplit", call_split<true>},
                                     {"rstrip", call_strip<false, true>},
                                     {"split", call_split<false>},
                                     {"splitlines", call_splitlines},
                                     {"startswith", call_starts<false>},
                                     {"strip", call_strip<true, true>},
                                     {"swapcase", call_case<LetterCase::swapped>},
                                     {"title", call_case<LetterCase::title>},
                                     {"upper", call_case<LetterCase::upper>},
                                     {"zfill", call_zfill}};

}  // namespace

const Function* find_text_method(std::string_view name) { return find_in(kTextMethods, name); }

}  // namespace qkv::jinja
