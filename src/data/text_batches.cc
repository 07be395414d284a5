#include "data/text_batches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/fail.h"
#include "core/hash.h"
#include "core/random.h"
#include "core/to_size.h"
#include "data/batcher.h"

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
  stream.ends = start == end ? EndTokens::shared : EndTokens::own;
  for (const std::string_view document : documents) {
    if (stream.ends == EndTokens::own && !stream.ids.empty()) stream.ids.push_back(end);
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

std::string fingerprint_of(const TokenStream& text) {
  const std::string_view bytes(reinterpret_cast<const char*>(text.ids.data()), text.ids.size() * sizeof(int32_t));
  return fmt::format("{:016x} {}", hash_bytes(bytes), text.ids.size());
}

TextBatches::TextBatches(const TokenStream& text, const TextBatchOptions& options) : text_(text), options_(options) {
  for (const Piece& piece : cut(options.max_length))
    longest_ = std::max(longest_, piece.end - piece.begin + options.around);
  if (options.batch_tokens < longest_ || options.batch_tokens > std::numeric_limits<int32_t>::max())
    fail("batches: batch_tokens must be between {}, the longest sequence, and 2^31 - 1 (is {})", longest_,
         options.batch_tokens);
}

// Splits the documents into pieces. first: the number of tokens in the first piece of each document.
std::vector<TextBatches::Piece> TextBatches::cut(int64_t first) const {
  std::vector<Piece> pieces;
  for (size_t d = 0; d < text_.starts.size(); d++) {
    const int64_t end = text_.end_of(d);
    int64_t length = first;
    for (int64_t begin = text_.starts[d]; begin < end; begin += std::exchange(length, options_.max_length))
      pieces.push_back({begin, std::min(end, begin + length)});
  }
  return pieces;
}

TextBatches::Epoch TextBatches::batched(std::vector<Piece> pieces) const {
  std::vector<int64_t> offsets = batch_offsets(std::ssize(pieces), options_.batch_tokens, [&](int64_t i) {
    return pieces[to_size(i)].end - pieces[to_size(i)].begin + options_.around;
  });
  return {std::move(pieces), std::move(offsets)};
}

TextBatches::Epoch TextBatches::shuffled(int64_t epoch) const {
  Random random(options_.seed, Stream::shuffle, static_cast<uint64_t>(epoch));
  std::vector<Piece> pieces = cut(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(options_.max_length))));
  random.shuffle(pieces);
  return batched(std::move(pieces));
}

TextBatches::Epoch TextBatches::in_order() const { return batched(cut(options_.max_length)); }

void TextBatches::fill(const Epoch& epoch, int64_t batch, Batch& to) const {
  to.clear();
  const std::span<const int32_t> ids(text_.ids);
  for (int64_t i = epoch.offsets[to_size(batch)]; i < epoch.offsets[to_size(batch) + 1]; i++) {
    const auto [begin, end] = epoch.pieces[to_size(i)];
    to.target.append(ids.subspan(to_size(begin), to_size(end - begin)));
    to.labels.insert(to.labels.end(), ids.begin() + begin + 1, ids.begin() + end + 1);
  }
}

}  // namespace qkv
