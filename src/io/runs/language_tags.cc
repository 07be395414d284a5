#include "io/runs/language_tags.h"

#include <fmt/format.h>

#include <vector>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr size_t kMostNamed = 8;

bool is_tag(const std::string& piece) { return piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<"); }

}  // namespace

void refuse_tagged_language(const Tokenizer& source, const std::string& language) {
  if (language.empty()) return;
  const std::string own = is_tag(language) ? language : fmt::format(">>{}<<", language);
  std::vector<std::string> tags;
  bool has_own = false;
  for (int32_t id = 0; id < source.size(); id++) {
    const std::string piece = source.piece(id);
    if (!is_tag(piece)) continue;
    has_own |= piece == own;
    if (tags.size() < kMostNamed) tags.push_back(piece);
  }
  if (has_own)
    fail("target_language must be empty (is {}): this model reads a tag of the text; begin each text with {}",
         excerpt(language), own);
  if (!tags.empty())
    fail(
        "target_language must be empty (is {}): this model reads a tag of the text; begin each text with one of its "
        "tags, such as {}",
        excerpt(language), fmt::join(tags, ", "));
}

}  // namespace qkv
