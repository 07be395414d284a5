#include "train/plain_text.h"

#include <algorithm>
#include <memory>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr int64_t kMaxPieceLines = 1'000'000;  // from which pieces are trained
constexpr size_t kMaxTextBytes = size_t{1} << 34;

}  // namespace

PlainText::PlainText(const std::vector<std::string>& files, const std::string& separator, const char* utf8_advice) {
  for (const std::string& file : files) contents.push_back(read_file(file, kMaxTextBytes, Accepts::pipe));
  for (size_t i = 0; i < files.size(); i++) {
    if (utf8_advice)
      if (const size_t bad = find_invalid_utf8(contents[i]); bad != std::string::npos)
        fail("{}: byte {} is not valid UTF-8{}{}", files[i], bad + 1, mark_hint(contents[i]), utf8_advice);
    const std::vector<std::string_view> own = split_documents(contents[i], separator);
    if (own.empty()) fail("{}: contains no text", files[i]);
    documents.insert(documents.end(), own.begin(), own.end());
  }
}

std::vector<TextPlace> places_of(const PlainText& text) {
  std::vector<TextPlace> places;
  TextPlace place;
  const auto end_of_file = [&] { return std::to_address(text.contents[to_size(place.file)].end()); };
  const char* at = text.contents.front().data();  // the position of `place`
  for (const std::string_view document : text.documents) {
    while (document.data() < text.contents[to_size(place.file)].data() || document.data() >= end_of_file()) {
      place = {place.file + 1, 1};
      at = text.contents[to_size(place.file)].data();
    }
    place.line += std::count(at, document.data(), '\n');
    at = document.data();
    places.push_back(place);
  }
  return places;
}

Tokenizer train_pieces(const TokenizerOptions& options, const std::vector<std::string_view>& documents) {
  int64_t count = 0;
  for (const std::string_view document : documents) count += std::count(document.begin(), document.end(), '\n') + 1;
  const int64_t every = (count + kMaxPieceLines - 1) / kMaxPieceLines;
  std::vector<std::string> lines;
  int64_t line = 0;
  for (std::string_view document : documents)
    while (!document.empty()) {
      const size_t length = std::min(document.find('\n'), document.size() - 1) + 1;
      if (line++ % every == 0) lines.emplace_back(document.substr(0, length));
      document.remove_prefix(length);
    }
  return Tokenizer::train(lines, options);
}

}  // namespace qkv
