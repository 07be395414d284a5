// Plain text that models are trained on: files, the documents in them, and a tokenizer of their text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text_batches.h"
#include "text/tokenizer.h"

namespace qkv {

// The contents of files and the documents in them.
struct PlainText {
  std::vector<std::string> contents;
  std::vector<std::string_view> documents;  // parts of the contents

  // Reads files and splits them at each separator (split_documents). Throws Error, naming the file, for one without
  // text, and for one that is not UTF-8, with this advice at its end; without advice (null), any bytes are text.
  PlainText(const std::vector<std::string>& files, const std::string& separator, const char* utf8_advice);
  PlainText(const PlainText&) = delete;
  PlainText& operator=(const PlainText&) = delete;
};

// Returns the beginning of each document in the files, in the order of the files.
std::vector<TextPlace> places_of(const PlainText& text);

// Returns a SentencePiece model, trained from all lines or, if the text is long, from every nth line.
Tokenizer train_pieces(const TokenizerOptions& options, const std::vector<std::string_view>& documents);

}  // namespace qkv
