// The files of tokenizers that came before tokenizer.json: the bytes are one of them, the others are valid.
#include "convert/text/vocabulary_files.h"

#include "fuzz/byte_vocabulary.h"
#include "fuzz/import.h"

namespace {

constexpr char kMerges[] = "#version: 0.2\na b\n";
constexpr char kLines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
constexpr char kSettings[] = R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": "<unk>"})";

using qkv::fuzz::SourceDirectory;

template <class Read>
void read(const SourceDirectory& source, const Read& read) {
  qkv::fuzz::attempt([&] {
    const qkv::TokenizerSpec spec = read(qkv::ModelFiles::of_directory(source.path()));
    const qkv::HuggingFaceTokenizer tokenizer(spec, "files");
    tokenizer.decode(tokenizer.encode("ab a☃"), false);
  });
}

}  // namespace

void qkv::fuzz::fuzz_vocabulary_files(std::string_view bytes) {
  static const std::string vocabulary = byte_vocabulary();
  static const SourceDirectory pieces("vocab.json", {{"merges.txt", kMerges}}),
      merges("merges.txt", {{"vocab.json", vocabulary}}),
      settings("tokenizer_config.json", {{"vocab.json", vocabulary}, {"merges.txt", kMerges}, {"vocab.txt", kLines}}),
      added("added_tokens.json",
            {{"vocab.json", vocabulary}, {"merges.txt", kMerges}, {"tokenizer_config.json", kSettings}}),
      special("special_tokens_map.json", {{"vocab.json", vocabulary}, {"merges.txt", kMerges}, {"vocab.txt", kLines}}),
      lines("vocab.txt", {});
  const MemoryFile file(bytes);
  const auto read_pairs = [](const SourceDirectory& source, const char* tokenizer_class) {
    read(source, [&](const ModelFiles& files) { return read_vocabulary_and_merges(files, tokenizer_class); });
  };
  read_pairs(pieces, "GPT2Tokenizer");
  read_pairs(merges, "Qwen2Tokenizer");
  read_pairs(settings, "GPT2Tokenizer");
  read_pairs(added, "RobertaTokenizer");
  read_pairs(special, "RobertaTokenizer");
  for (const SourceDirectory* source : {&settings, &special, &lines})
    read(*source, [](const ModelFiles& files) { return read_vocabulary_lines(files); });
}
