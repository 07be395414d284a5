// Shared by all fuzz targets: the reader under test, checks of its results, and a file that is only in memory.
#pragma once

#include <string>
#include <string_view>

#include "core/function_ref.h"

namespace qkv::fuzz {

// The targets. fuzz/NAME.cc defines fuzz_NAME, which reads bytes that nobody has checked; fuzz/documents.cc defines
// those of documents. CMakeLists.txt takes the names from here. A finding is, besides what the sanitizers report: an
// exception other than Error, an Error of more than one line, and more memory at a time than bytes.size() + 64 MB.
// clang-format off
#define QKV_FUZZ_TARGETS(target) \
  target(adapter) target(argos) target(bert) target(charsmap) target(chat_template) target(config) \
  target(ctranslate2) target(examples) target(explain) target(form) target(gguf) target(glossary) target(gpt2) \
  target(gpt_neox) target(gzip) target(html) target(http_request) target(http_target) target(hub) target(interactions) target(item_features) \
  target(json) target(llama) target(marian) target(metrics) target(multipart) target(npz) target(pairs) \
  target(pickle) target(plot) target(protected_parts) target(rank_messages) target(requests) target(safetensors) target(saved_interactions) \
  target(sentencepiece) target(sentences) target(server_completions) target(server_embeddings) target(server_gorse) \
  target(server_translate) target(settings) target(state) target(text) target(text_requests) target(titles) \
  target(tokenizer_json) target(torch) target(vocabulary_files) target(weights) target(weights_int4) \
  target(word_links) target(zstd) QKV_FUZZ_DOCUMENTS(target)
#define QKV_FUZZ_DOCUMENTS(target) \
  target(documents_csv) target(documents_docx) target(documents_epub) target(documents_html) target(documents_json) \
  target(documents_markdown) target(documents_odt) target(documents_po) target(documents_pptx) \
  target(documents_properties) target(documents_srt) target(documents_text) target(documents_tmx) \
  target(documents_tsv) target(documents_vtt) target(documents_xliff) target(documents_xlsx) target(documents_yaml)
// clang-format on
#define QKV_DECLARE(name) void fuzz_##name(std::string_view bytes);
QKV_FUZZ_TARGETS(QKV_DECLARE)
#undef QKV_DECLARE

using Read = void (*)(std::string_view bytes);

// Returns the target of this name, or nullptr if the program has none.
Read find_target(std::string_view name);

// Begins to count the memory that is allocated; false if the program lacks AddressSanitizer.
bool watch_memory();

// Runs a target; a finding ends the program. Returns whether the bytes were read without an Error, in one way at least
// if the target attempts several.
bool run(Read target, std::string_view bytes);

// Calls f, which may throw an Error; returns false then. For a target that reads the same bytes in several ways.
bool attempt(FunctionRef<void()> f);

// Calls f; an Error of it is a finding. For what a target prepares, and for what must work after an input was accepted.
void must_succeed(FunctionRef<void()> f);

// A finding unless it holds; `what` says what should.
void require(bool holds, const char* what);

// A regular file of these bytes, at a path, that no disk sees. One at a time.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const;
};

}  // namespace qkv::fuzz
