// Seeds of tokenizers: SentencePiece models, tokenizer.json and the files before it.
#include <nlohmann/json.hpp>

#include "fuzz/byte_vocabulary.h"
#include "fuzz/seeds.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/support/sentences.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv::fuzz {
namespace {

namespace fs = std::filesystem;
namespace spm = qkv::testing::spm;

void tokenizers(const fs::path& directory) {
  Seeds models(directory, "sentencepiece"), tables(directory, "charsmap");
  models.add(spm::with_pieces(spm::piece("▁", 1, -1) + spm::piece("a", 1, -2) + spm::piece("▁aa", 4)));
  models.add(spm::with_pieces(spm::piece("ab", 4) + spm::piece("a", 4) + spm::piece("abc", 4)));
  std::string nested;
  for (size_t length = 1; length <= 70; length++) nested += spm::piece(std::string(length, 'a'), 4);
  models.add(spm::with_pieces(nested));
  models.add(spm::kControl + spm::piece("a") + spm::piece("<0x41>", 6) +
             spm::field(2, spm::varint(3 << 3) + spm::varint(2)) + spm::field(3, ""));  // BPE
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe})
    models.add(Tokenizer::train(testing::sentences(100, 1),
                                {.kind = kind, .vocab_size = 60, .normalization = Normalization::none})
                   .serialized());
  for (const spm::Trie& trie : {spm::Trie(), spm::Trie::of_one_key(), spm::Trie::of_repeated_keys(3)}) {
    tables.add(trie.charsmap(std::string("a\0bc\0", 5)));
    models.add(spm::with_charsmap(trie.charsmap(std::string("a\0bc\0", 5))));
  }
}

// Tokenizers of the general kind: each model, and most steps.
void add_pipelines(Seeds& seeds) {
  const std::vector<std::string> pieces = {"<unk>", "a", "b", "\u2581", "\u2581a", "<0x41>"};
  PipelineSpec pipeline;
  pipeline.normalizer =
      R"({"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Nmt"},{"type":"StripAccents"},{"type":"Strip"},)"
      R"({"type":"Precompiled","precompiled_charsmap":null},{"type":"Prepend","prepend":"b"},)"
      R"x({"type":"Replace","pattern":{"Regex":" {2,}|(?i:x)(?!\\S)"},"content":" "}]})x";
  pipeline.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Punctuation"},{"type":"Whitespace"},)"
      R"({"type":"Split","pattern":{"Regex":"[^\\s\\p{L}&&[a-d]]+?|\\b"},"behavior":"MergedWithNext","invert":true},)"
      R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":true}]})";
  pipeline.decoder = R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},)"
                     R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  PairsModel pairs{.options = {.unknown = "<unk>", .fuse_unknown = true, .byte_fallback = true}};
  add_pair("\u2581", "a", pairs.merges);
  const UnigramModel unigram{.scores = {0, -1, -2, -1, -1.5, -9}, .unknown = 0, .byte_fallback = true};
  using Model = decltype(pipeline.model);
  for (const Model& model :
       {Model(pairs), Model(unigram), Model(LongestModel{"<unk>", "##", 10}), Model(WholeWordsModel{})}) {
    pipeline.model = model;
    seeds.add(to_json({.pieces = pieces, .added = {{.id = 6, .text = "</s>"}}, .after = 6, .model = pipeline}));
  }
}

void tokenizer_files(const fs::path& directory) {
  Seeds seeds(directory, "tokenizer_json");
  TokenizerSpec spec;
  spec.pieces = testing::pieces_of_bytes();
  spec.pieces.insert(spec.pieces.end(), {"Ġt", "he", "Ġthe"});
  spec.added = {{.id = 259, .text = "<|endoftext|>"},
                {.id = 260, .text = "née", .single_word = true, .strips_left = true, .normalized = true},
                {.id = 261, .text = "<m>", .single_word = true, .strips_right = true}};
  spec.before = 259;
  spec.model = BytePieces{.merges = "Ġ t\nh e\nĠt he\n"};
  seeds.add(to_json(spec));
  spec.model = BytePieces{.merges = "h e\nĠ t\n",
                          .whole_words = true,
                          .compose = true,
                          .splits = {WordPattern::digit, WordPattern::qwen2},
                          .space_first = true,
                          .gpt2_words = false};
  seeds.add(to_json(spec));
  seeds.add(to_json({.pieces = {"[UNK]", "[CLS]", "[SEP]", "a", "##a", "##á"},
                     .added = {{.id = 1, .text = "[CLS]"}},
                     .before = 1,
                     .after = 2,
                     .model = WordPieceModel{}}));
  nlohmann::json other = nlohmann::json::parse(to_json(testing::byte_pieces()));
  other["model"]["merges"] = nlohmann::json::array({nlohmann::json::array({"a", "b"})});
  other["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"<end>", 257}}, {"cls", {"<end>", 257}}};
  seeds.add(other.dump());
  other["model"]["unk_token"] = "a";
  other["post_processor"] = nullptr;
  seeds.add(other.dump());
  other["model"]["vocab"].erase("b");
  seeds.add(other.dump());
  add_pipelines(seeds);
}

void vocabulary_files(const fs::path& directory) {
  Seeds seeds(directory, "vocabulary_files");
  seeds.add(byte_vocabulary());
  seeds.add("#version: 0.2\na b\n");
  seeds.add("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n");
  seeds.add(R"({"<|im_end|>": 6, "<mask>": 7})");
  seeds.add(
      R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "strip_accents": null, "add_bos_token": true,
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "unk_token": "<unk>", "mask_token": "<mask>",
    "added_tokens_decoder": {"6": {"content": "<mask>", "lstrip": true, "special": true}}})");
}

}  // namespace

void tokenizer_seeds(const fs::path& directory) {
  for (const auto write : {tokenizers, tokenizer_files, vocabulary_files}) write(directory);
}

}  // namespace qkv::fuzz
