// Trains an encoder, layer by layer, to name the first token of a sequence: encoder [STEPS]
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "qkv/layers.h"

using namespace qkv::layers;

namespace {

constexpr int64_t V = 10, T = 8, B = 16, d = 32;  // tokens of the vocabulary, of a sequence; sequences; width

// One step of gradient descent.
void step(Module<float>& module, float rate) {
  std::vector<NamedArray<float>> values = module.parameters(), gradients = module.gradients();
  for (size_t i = 0; i < values.size(); i++) {
    int64_t size = 1;
    for (const int64_t n : values[i].shape) size *= n;
    for (int64_t e = 0; e < size; e++) values[i].data[e] -= rate * gradients[i].data[e];
  }
  module.clear_gradients();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 300;
  qkv::ModelConfig config = sizes(d, 4, 64, 2);  // width, heads, inner width, layers
  config.norm.position = qkv::NormPosition::pre;
  config.norm.final = true;
  Embedding<float> embedding(V, d, {.positions = qkv::Positions::interleaved});
  Encoder<float> encoder(config);
  Linear<float> output(d, V);

  std::vector<int32_t> offsets;  // the sequences are packed: row s T is the first of sequence s
  for (int32_t s = 0; s <= B; s++) offsets.push_back(s * T);
  const Call<float> call = {.rows = Rows::packed(offsets)};

  std::mt19937 generator(1);
  std::uniform_int_distribution<int32_t> token(0, V - 1);
  std::vector<int32_t> ids(B * T), labels(B * T);
  std::vector<float> gradient(B * T * V);
  const qkv::Matrix<float> dlogits(gradient.data(), B * T, V);
  for (int64_t n = 1; n <= steps; n++) {
    for (int32_t& id : ids) id = token(generator);
    for (int64_t i = 0; i < B * T; i++) labels[i] = ids[i / T * T];
    const auto logits = output.forward({encoder.forward({embedding.forward(ids, call)}, call)});
    const double loss = cross_entropy<float>(logits, labels, 0, dlogits).loss;
    embedding.backward(encoder.backward(output.backward(dlogits)[0])[0]);
    for (Module<float>* module : {static_cast<Module<float>*>(&embedding), static_cast<Module<float>*>(&encoder),
                                  static_cast<Module<float>*>(&output)})
      step(*module, 0.1f);
    if (n == 1 || n == steps) std::cout << "step " << n << "  loss " << loss << "\n";
  }
}
