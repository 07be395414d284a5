#include "convert/marian_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/formats/yaml.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;
using MarianPath = std::filesystem::path;

constexpr size_t kMaxMarianFile = size_t{16} << 20;  // bytes
constexpr const char *kMarianEnd = "</s>", *kMarianUnknown = "<unk>";

bool is_sentencepiece(const MarianPath& file) { return file.extension() == ".spm" || file.extension() == ".model"; }

bool is_file(const MarianPath& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error);
}

// The names of the vocabularies in a configuration, as files next to it; none if it has no list of two.
std::vector<std::string> vocabularies_of(const MarianPath& configuration) {
  const json config = parse_yaml(read_file(configuration, kMaxMarianFile), configuration);
  const auto list = config.find("vocabs");
  std::vector<std::string> files;
  if (list == config.end() || !list->is_array()) return files;
  for (const json& name : *list)
    if (name.is_string()) files.push_back(configuration.parent_path() / MarianPath(name.get<std::string>()).filename());
  return files;
}

// The source's vocabulary and the target's.
std::vector<std::string> find_vocabularies(const MarianPath& npz, const ImportOptions& options) {
  if (!options.source_vocabulary.empty())
    return {options.source_vocabulary,
            options.target_vocabulary.empty() ? options.source_vocabulary : options.target_vocabulary};
  const MarianPath folder = npz.parent_path();
  for (const MarianPath& configuration :
       {MarianPath(npz.string() + ".decoder.yml"), folder / "decoder.yml", MarianPath(npz.string() + ".yml")}) {
    if (!is_file(configuration)) continue;
    const std::vector<std::string> files = vocabularies_of(configuration);
    if (files.size() == 2) return files;
    if (!files.empty()) fail("{}: vocabs must name two files (names {})", configuration.string(), files.size());
  }
  for (const char* name : {"vocab.spm", "vocab.yml"})
    if (is_file(folder / name)) return {folder / name, folder / name};
  fail(
      "{}: has no vocabulary: expected vocabs in {}.decoder.yml, decoder.yml or {}.yml, vocab.spm or vocab.yml, or the "
      "option source_vocabulary",
      npz.string(), npz.filename().string(), npz.filename().string());
}

std::vector<std::string> read_list(const MarianPath& file) {
  const std::string text = read_file(file, kMaxMarianFile), extension = file.extension();
  const bool is_mapping = extension == ".yml" || extension == ".yaml" || extension == ".json";
  return is_mapping ? parse_yaml_vocabulary(text, file) : pieces_from_lines(text, file);
}

Tokenizer read_vocabulary(const MarianPath& file, bool is_source, const ImportOptions& options,
                          const MarianPath& folder) {
  if (file.extension() == ".fsv") fail("{}: not supported: a vocabulary of factors", file.string());
  if (is_sentencepiece(file)) return Tokenizer::load(file);
  const auto splitter = choose_splitter(is_source, options, [&]() -> std::optional<SentencePieceFile> {
    const MarianPath own = folder / (is_source ? "source.spm" : "target.spm");
    if (!is_file(own)) return {};
    return SentencePieceFile::read(own);
  });
  return Tokenizer::with_pieces(splitter, read_list(file), options.unknown.value_or(kMarianUnknown), file);
}

}  // namespace

bool is_npz(const std::string& file) { return MarianPath(file).extension() == ".npz"; }

std::vector<std::string> npz_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (is_npz(entry.path()) && !entry.path().native().ends_with(".optimizer.npz")) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TranslatorText read_marian_vocabularies(const std::string& npz, const ImportOptions& options) {
  const MarianPath folder = MarianPath(npz).parent_path();
  const std::vector<std::string> files = find_vocabularies(npz, options);
  TokenizerPair tokenizers{read_vocabulary(files[0], true, options, folder),
                           read_vocabulary(files[1], false, options, folder)};
  // Marian starts from a zero vector in place of an embedding, so any token may stand there, and does not generate the
  // unknown token.
  TranslationConfig t;
  const Tokenizer& target = tokenizers.target;
  t.end = target.own_pieces() ? kMarianEnd : target.piece(target.end());
  t.unknown = target.own_pieces() ? kMarianUnknown : target.piece(target.unknown());
  t.start = t.source_end = t.end;
  override_tokens(t, options);
  if (!t.unknown.empty()) t.never = {t.unknown};
  return {std::move(tokenizers), std::move(t)};
}

}  // namespace qkv
