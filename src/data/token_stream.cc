#include "data/token_stream.h"

#include <algorithm>

#include "core/fail.h"

namespace qkv {

std::vector<std::string_view> split_documents(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const size_t end = separator.empty() ? text.size() : std::min(text.find(separator), text.size());
    if (end > 0) documents.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    if (text.starts_with('\n')) text.remove_prefix(1);
  }
  return documents;
}

std::vector<std::string_view> take_end(std::vector<std::string_view>& documents, double share) {
  size_t bytes = 0;
  for (const std::string_view document : documents) bytes += document.size();
  auto remaining = static_cast<size_t>(share * static_cast<double>(bytes));
  std::vector<std::string_view> end;
  while (remaining > 0 && !documents.empty()) {
    std::string_view& last = documents.back();
    size_t cut = last.size() - std::min(remaining, last.size());
    while (cut > 0 && (static_cast<unsigned char>(last[cut]) & 0xC0) == 0x80) cut--;  // inside a UTF-8 character
    end.push_back(last.substr(cut));
    remaining -= std::min(remaining, end.back().size());
    last = last.substr(0, cut);
    if (last.empty()) documents.pop_back();
  }
  std::reverse(end.begin(), end.end());
  return end;
}

TokenStream stream_of(const std::vector<std::string_view>& documents, const TextCodec& codec, const std::string& where,
                      const std::optional<DocumentEnds>& ends) {
  if (documents.empty()) fail("{}: contains no text", where);
  const auto [start, end] = ends.value_or(DocumentEnds{codec.end(), codec.end()});
  TokenStream stream;
  stream.shares_ends = start == end;
  for (const std::string_view document : documents) {
    if (!stream.shares_ends && !stream.ids.empty()) stream.ids.push_back(end);
    stream.starts.push_back(std::ssize(stream.ids));
    stream.ids.push_back(start);
    // The spelling of a control token of SentencePiece is text to learn; added tokens of a tokenizer.json are tokens.
    const bool plain = codec.unit() == TextUnit::pieces;
    const std::vector<int32_t> ids = plain ? codec.encode_plain(document, where) : codec.encode(document, where);
    stream.ids.insert(stream.ids.end(), ids.begin(), ids.end());
    stream.bytes += static_cast<int64_t>(document.size());
  }
  stream.ids.push_back(end);
  return stream;
}

}  // namespace qkv
