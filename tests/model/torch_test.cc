// nn.TransformerEncoderLayer, nn.TransformerDecoderLayer and nn.Transformer: outputs and every gradient.
#include <gtest/gtest.h>

#include "model/stack.h"
#include "tests/support/torch_case.h"

namespace qkv {
namespace {

using testing::PaddedSequences;
using testing::Rows;
using testing::TorchSetUp;

const char* const kVariants[] = {"post_relu", "post_gelu", "pre_relu", "pre_gelu"};
constexpr StackKind kEncoder{Causal::none, false}, kDecoder{Causal::top_left, true};

template <class Real>
void expect_encoder_layer(const std::string& variant) {
  SCOPED_TRACE(variant);
  TorchSetUp set_up("encoder_layer_" + variant);
  auto& [file, sites, arena, c] = set_up;
  ParameterList<Real> list;
  const Layer<Real> layer(list, "layer", 0, file.config(), kEncoder, sites);
  file.load(list);

  Rows<Real> x(file, "in.src"), gradient(file, "grad_out");
  const PaddedSequences self(x.T, x.T, file.lengths("mask.src_key_padding"));
  typename Layer<Real>::Saved saved;
  file.expect<Real>("out", layer.forward(x.matrix(), {}, self.view(), {}, c, saved));
  layer.backward(gradient.matrix(), {}, self.view(), {}, c, saved);
  file.expect<Real>("grad_in.src", gradient.matrix());
  file.expect_gradients(list);
}

template <class Real>
void expect_decoder_layer(const std::string& variant) {
  SCOPED_TRACE(variant);
  TorchSetUp set_up("decoder_layer_" + variant);
  auto& [file, sites, arena, c] = set_up;
  ParameterList<Real> list;
  const Layer<Real> layer(list, "layer", 0, file.config(), kDecoder, sites);
  file.load(list);

  Rows<Real> x(file, "in.tgt"), memory(file, "in.memory"), gradient(file, "grad_out");
  const PaddedSequences self(x.T, x.T, file.lengths("mask.tgt_key_padding"));
  const PaddedSequences cross(x.T, memory.T, file.lengths("mask.memory_key_padding"));
  typename Layer<Real>::Saved saved;
  file.expect<Real>("out", layer.forward(x.matrix(), memory.matrix(), self.view(), cross.view(), c, saved));
  const Matrix<Real> dmemory = arena.zeros<Real>(memory.B * memory.T, memory.d);
  layer.backward(gradient.matrix(), dmemory, self.view(), cross.view(), c, saved);
  file.expect<Real>("grad_in.tgt", gradient.matrix());
  file.expect<Real>("grad_in.memory", dmemory);
  file.expect_gradients(list);
}

template <class Real>
void expect_transformer(const std::string& variant) {
  SCOPED_TRACE(variant);
  TorchSetUp set_up("transformer_" + variant);
  auto& [file, sites, arena, c] = set_up;
  ParameterList<Real> list;
  const ModelConfig config = file.config();
  const Stack<Real> encoder(list, "encoder", config.encoder_layers, config, kEncoder, sites);
  const Stack<Real> decoder(list, "decoder", config.decoder_layers, config, kDecoder, sites);
  file.load(list);

  Rows<Real> source(file, "in.src"), target(file, "in.tgt"), gradient(file, "grad_out");
  const PaddedSequences source_self(source.T, source.T, file.lengths("mask.src_key_padding"));
  const PaddedSequences target_self(target.T, target.T, file.lengths("mask.tgt_key_padding"));
  const PaddedSequences cross(target.T, source.T, file.lengths("mask.memory_key_padding"));
  typename Stack<Real>::Saved encoder_saved, decoder_saved;
  const Matrix<Real> memory = encoder.forward(source.matrix(), {}, source_self.view(), {}, c, encoder_saved);
  file.expect<Real>("out",
                    decoder.forward(target.matrix(), memory, target_self.view(), cross.view(), c, decoder_saved));
  const Matrix<Real> dmemory = arena.zeros<Real>(memory.rows, memory.cols);
  decoder.backward(gradient.matrix(), dmemory, target_self.view(), cross.view(), c, decoder_saved);
  encoder.backward(dmemory, {}, source_self.view(), {}, c, encoder_saved);
  file.expect<Real>("grad_in.tgt", gradient.matrix());
  file.expect<Real>("grad_in.src", dmemory);
  file.expect_gradients(list);
}

TEST(EncoderLayer, AgreesWithTorch) {
  for (const char* variant : kVariants) expect_encoder_layer<double>(variant), expect_encoder_layer<float>(variant);
}

TEST(DecoderLayer, AgreesWithTorch) {
  for (const char* variant : kVariants) expect_decoder_layer<double>(variant), expect_decoder_layer<float>(variant);
}

TEST(EncoderAndDecoder, AgreeWithTorch) {
  for (const char* variant : kVariants) expect_transformer<double>(variant), expect_transformer<float>(variant);
}

}  // namespace
}  // namespace qkv
