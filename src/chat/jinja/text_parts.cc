#include "chat/jinja/text_parts.h"

#include <unicode/uchar.h>

#include <algorithm>

namespace qkv::jinja {
namespace {

std::vector<ByteRange> words_of(std::string_view text) {
  std::vector<ByteRange> words;
  bool inside = false;
  for (size_t place = 0; place < text.size();) {
    const size_t begin = place;
    const bool space = is_space(next_character(text, place));
    if (!space && !inside) words.push_back({begin, place});
    if (!space) words.back().end = place;
    inside = !space;
  }
  return words;
}

bool holds(const MarkedText& characters, std::string_view character) {
  return characters.bytes.find(character) != std::string::npos;
}

}  // namespace

std::vector<ByteRange> split_at(std::string_view text, std::string_view separator, int64_t most, bool from_right) {
  std::vector<ByteRange> parts;
  size_t begin = 0, end = text.size();
  while (most < 0 || std::ssize(parts) < most) {
    size_t place = std::string_view::npos;
    if (!from_right)
      place = text.find(separator, begin);
    else if (end >= separator.size())
      place = text.rfind(separator, end - separator.size());
    if (place == std::string_view::npos) break;
    parts.push_back(from_right ? ByteRange{place + separator.size(), end} : ByteRange{begin, place});
    from_right ? end = place : begin = place + separator.size();
  }
  parts.push_back({begin, end});
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

std::vector<ByteRange> split_at_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<ByteRange> words = words_of(text);
  if (most < 0 || std::ssize(words) <= most) return words;
  const auto kept = static_cast<size_t>(most);
  if (from_right) {
    std::vector<ByteRange> parts = {{0, words[words.size() - kept - 1].end}};
    parts.insert(parts.end(), words.end() - static_cast<std::ptrdiff_t>(kept), words.end());
    return parts;
  }
  const ByteRange last{words[kept].begin, text.size()};
  words.resize(kept);
  words.push_back(last);
  return words;
}

std::vector<ByteRange> lines_of(std::string_view text, bool with_breaks) {
  std::vector<ByteRange> lines;
  size_t begin = 0;
  for (size_t place = 0; place < text.size();) {
    const size_t end = place;
    const int32_t c = next_character(text, place);
    if (!breaks_line(c)) continue;
    if (c == '\r' && place < text.size() && text[place] == '\n') place++;
    lines.push_back({begin, with_breaks ? place : end});
    begin = place;
  }
  if (begin < text.size()) lines.push_back({begin, text.size()});
  return lines;
}

Value texts_of(Renderer& r, const MarkedText& text, const std::vector<ByteRange>& parts) {
  r.budget().work(parts.size() * sizeof(Text));
  std::vector<Value> texts;
  for (const ByteRange& part : parts) texts.push_back(r.text(text.part(part.begin, part.end)));
  return r.list(std::move(texts));
}

MarkedText stripped(const MarkedText& text, bool left, bool right, const MarkedText* characters) {
  std::string_view rest = text.bytes;
  if (!characters) {
    if (left) rest = strip_left(rest);
    if (right) rest = strip_right(rest);
  } else {
    const std::vector<size_t> places = character_places(rest);
    size_t first = 0, last = places.size() - 1;
    const auto is_removed = [&](size_t i) {
      return holds(*characters, std::string_view(text.bytes).substr(places[i], places[i + 1] - places[i]));
    };
    while (left && first < last && is_removed(first)) first++;
    while (right && first < last && is_removed(last - 1)) last--;
    rest = rest.substr(places[first], places[last] - places[first]);
  }
  const auto begin = static_cast<size_t>(rest.data() - text.bytes.data());
  return text.part(begin, begin + rest.size());
}

MarkedText replaced(Renderer& r, const MarkedText& text, const MarkedText& old_text, const MarkedText& new_text,
                    int64_t most) {
  std::vector<ByteRange> parts;
  if (old_text.bytes.empty()) {
    const std::vector<size_t> places = character_places(text.bytes);
    const size_t cuts = most < 0 ? places.size() : std::min(places.size(), static_cast<size_t>(most));
    if (cuts > 0) parts.push_back({0, 0});
    for (size_t i = 0; i + 1 < cuts; i++) parts.push_back({places[i], places[i + 1]});
    if (cuts == 0)
      parts.push_back({0, text.size()});
    else
      parts.push_back({places[cuts - 1], text.size()});
  } else {
    parts = split_at(text.bytes, old_text.bytes, most, false);
  }
  const Charge room(&r.budget(), parts.size() * (sizeof(ByteRange) + new_text.size()));
  MarkedText result;
  for (size_t i = 0; i < parts.size(); i++) {
    if (i > 0) result.append(new_text);
    result.append(text, parts[i].begin, parts[i].end);
  }
  return result;
}

MarkedText padded(Renderer& r, const MarkedText& text, const std::string& fill, int64_t left, int64_t right) {
  constexpr int64_t kMost = 1 << 24;
  const Charge room(&r.budget(), static_cast<size_t>(std::min(left, kMost) + std::min(right, kMost)) * fill.size());
  MarkedText result;
  for (int64_t i = 0; i < std::min(left, kMost); i++) result.append(fill, false);
  result.append(text);
  for (int64_t i = 0; i < std::min(right, kMost); i++) result.append(fill, false);
  return result;
}

MarkedText cased(const MarkedText& text, LetterCase letter_case) {
  std::string changed = with_case(text.bytes, letter_case);
  return text.has_data() ? MarkedText::of_data(std::move(changed)) : MarkedText::of_template(std::move(changed));
}

bool has_case(std::string_view text, bool upper) {
  bool any = false;
  for (size_t place = 0; place < text.size();) {
    const int32_t c = next_character(text, place);
    if (upper ? u_isULowercase(c) || u_istitle(c) : u_isUUppercase(c) || u_istitle(c)) return false;
    any |= upper ? u_isUUppercase(c) : u_isULowercase(c);
  }
  return any;
}

}  // namespace qkv::jinja
