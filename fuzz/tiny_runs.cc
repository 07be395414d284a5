#include "fuzz/tiny_runs.h"

#include "io/runs/run.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/models.h"
#include "tests/support/recommenders.h"
#include "text/tokenizer.h"

namespace qkv::fuzz {
namespace {

// A layer a side of width 4.
ModelConfig tiny_config(int64_t encoder_vocab, int64_t decoder_vocab) {
  ModelConfig c;
  c.source_vocab = encoder_vocab;
  c.target_vocab = decoder_vocab;
  c.encoder_layers = encoder_vocab > 0 ? 1 : 0;
  c.decoder_layers = decoder_vocab > 0 ? 1 : 0;
  c.shared_embeddings = false;
  c.tied_output = c.has_decoder();
  c.d_model = c.ffn = 4;
  c.attention.heads = 1;
  c.attention.key_width = c.attention.value_width = 4;
  c.max_length = 16;
  return c;
}

template <class Run>
void make_run(const std::string& path, const Run& parts) {
  Transformer<float> model(parts.config);
  testing::randomize(model.parameters(), 1);
  create_run(RunDirectory(path), parts, [&](const RunDirectory& run) {
    save_weights(run.model(), model.parameters(), model.parameters().values());
  });
}

}  // namespace

std::vector<std::string> make_tiny_runs(const std::string& directory) {
  const Tokenizer pieces =
      Tokenizer::train({"the dog sees the cat", "a man reads <b>a book</b> ."}, {TokenizerKind::bpe, 40});
  const TokenizerPair both{pieces, pieces};
  make_run(directory + "/mt",
           TranslatorRun{tiny_config(pieces.size(), pieces.size()), both, trained_translation(both, false)});
  ModelConfig language = tiny_config(0, 257);
  language.positions = Positions::learned;
  make_run(directory + "/lm", LanguageRun{language, {.unit = TextUnit::bytes}, {}});
  make_run(directory + "/enc", EncoderRun{tiny_config(pieces.size(), 0), {}, TextCodec::of_pieces(pieces)});
  testing::create_recommender(directory + "/rec", testing::small_log(12));
  std::vector<std::string> runs;
  for (const char* name : {"mt", "lm", "rec", "enc"}) runs.push_back(std::string(name) + "=" + directory + "/" + name);
  return runs;
}

void make_tiny_chat(const std::string& run) {
  TokenizerSpec spec = testing::byte_pieces();
  for (const char* token :
       {"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})
    spec.added.push_back({.id = 257 + static_cast<int32_t>(spec.added.size()), .text = token});
  const TextCodec codec = TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "chat"));
  ModelConfig config = tiny_config(0, codec.size());
  config.positions = Positions::learned;
  make_run(run, LanguageRun{config, {.unit = codec.unit(), .start = "<s>", .ends = {"<end>"}}, codec});
}

}  // namespace qkv::fuzz
