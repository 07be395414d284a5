#include "model/layers/name_pattern.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using Segments = std::vector<std::string_view>;

Segments segments_of(std::string_view text) {
  Segments segments;
  for (;;) {
    const size_t dot = text.find('.');
    segments.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return segments;
    text.remove_prefix(dot + 1);
  }
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

// Whether `text` matches a pattern in which * stands for any characters.
bool matches_text(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t from = star; from <= text.size(); from++)
    if (matches_text(rest, text.substr(from))) return true;
  return false;
}

bool matches_segment(std::string_view pattern, std::string_view segment) {
  const size_t dash = pattern.find('-');
  if (dash != std::string_view::npos) {
    const auto first = number_of(pattern.substr(0, dash)), last = number_of(pattern.substr(dash + 1)),
               number = number_of(segment);
    return first && last && number && *first <= *number && *number <= *last;
  }
  return matches_text(pattern, segment);
}

bool is_embedding(std::string_view name) {
  const Segments segments = segments_of(name);
  return segments[0] == "embedding" || segments[0] == "source_embedding" || segments[0] == "target_embedding" ||
         (segments.size() > 1 && (segments[1] == "positions" || segments[1] == "embedding_norm"));
}

// The names with the layers of a side as one, "encoder.layers.0-5".
std::string summary_of(std::span<const std::string> names) {
  std::vector<std::string> parts;
  std::map<std::string, int64_t> last_layer;
  for (const std::string& name : names) {
    const Segments segments = segments_of(name);
    std::string part = name;
    if (segments.size() > 2 && segments[1] == "layers") {
      part = fmt::format("{}.layers", segments[0]);
      last_layer[part] = std::max(last_layer[part], number_of(segments[2]).value_or(0));
    }
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  for (std::string& part : parts)
    if (const auto layers = last_layer.find(part); layers != last_layer.end())
      part += layers->second > 0 ? fmt::format(".0-{}", layers->second) : ".0";
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) {
  if (pattern == "embeddings") return is_embedding(name);
  constexpr size_t kLongest = 200;  // bounds the work on a pattern of stars
  if (pattern.size() > kLongest) return false;
  const Segments wanted = segments_of(pattern), segments = segments_of(name);
  for (size_t first = 0; first + wanted.size() <= segments.size(); first++)
    if (std::equal(wanted.begin(), wanted.end(), segments.begin() + static_cast<int64_t>(first), matches_segment))
      return true;
  return false;
}

std::vector<bool> select_names(std::span<const std::string> patterns, std::span<const std::string> names,
                               std::string_view where) {
  std::vector<bool> selected(names.size());
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (size_t i = 0; i < names.size(); i++)
      if (matches_name(pattern, names[i])) selected[i] = any = true;
    if (!any) fail("{}: no parameter matches {} (there are {})", where, excerpt(pattern), summary_of(names));
  }
  return selected;
}

}  // namespace qkv
