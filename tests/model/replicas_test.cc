// Gradients of slices of a batch: their sum is that of the batch, with the same bytes for any number of threads.
#include "model/replicas.h"

#include "core/to_size.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

constexpr double kReplicaSmoothing = 0.1;

// No decoder layers: an encoder that predicts masked tokens.
ModelConfig replica_config(int64_t encoder_layers, int64_t decoder_layers = 2) {
  ModelConfig config = testing::small_config();
  config.encoder_layers = encoder_layers;
  config.decoder_layers = decoder_layers;
  if (decoder_layers == 0) {
    config.target_vocab = 0;
    config.shared_embeddings = false;
    config.token_head = TokenHead::dense;
  }
  if (encoder_layers == 0) config.source_vocab = 0, config.shared_embeddings = false;
  config.max_length = 90;
  return config;
}

ItemInputs inputs_of(const ModelConfig& config) { return {.gap_buckets = config.is_decoder_only() ? 3 : 0}; }

// More slices than replicas: sequences of 1 to 90 tokens.
Batch uneven_batch(const ModelConfig& config) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 160; i++) lengths.push_back(1 + 37 * i % 90);
  return testing::random_batch(config, lengths, lengths, 7, inputs_of(config));
}

struct ReplicaResult {
  double loss = 0;
  std::vector<float> gradient;
};

// Starts from gradients of 1, to which those of the batch are added.
ReplicaResult loss_and_gradient(Replicas& replicas, const Transformer<float>& model, const Batch& batch,
                                bool training) {
  Arena arena;
  Context context{arena, training, 3, 5};
  std::ranges::fill(model.parameters().gradients(), 1.0f);
  const auto loss_of = [&](const Transformer<float>& replica, const Batch& slice, int64_t first, Context& c) {
    EXPECT_EQ(batch.labels[to_size(first)], slice.labels[0]);
    if (batch.masked.empty())
      EXPECT_EQ(batch.target.ids[to_size(first)], slice.target.ids[0]);
    else
      EXPECT_EQ(batch.source.ids[to_size(batch.masked[to_size(first)])], slice.source.ids[to_size(slice.masked[0])]);
    return replica.loss_and_gradient(slice, Objective{kReplicaSmoothing}, c);
  };
  const Loss loss = replicas.loss_and_gradient(model, batch, loss_of, context);
  EXPECT_EQ(loss.tokens, std::ssize(batch.labels));
  const std::span<const float> gradients = model.parameters().gradients();
  return {loss.loss, {gradients.begin(), gradients.end()}};
}

// The same for the whole batch, without dropout.
template <class Real>
std::pair<double, std::vector<Real>> at_once(const Batch& batch, Transformer<Real>& model) {
  Arena arena;
  Context context{arena};
  model.parameters().allocate_gradients();
  std::ranges::fill(model.parameters().gradients(), Real(1));
  const double loss = model.loss_and_gradient(batch, Objective{kReplicaSmoothing}, context).loss;
  return {loss, {model.parameters().gradients().begin(), model.parameters().gradients().end()}};
}

TEST(Replicas, GiveTheGradientOfTheWholeBatch) {
  for (const ModelConfig& config : {replica_config(0), replica_config(2), replica_config(2, 0)}) {
    const Batch batch = uneven_batch(config);
    Transformer<float> model(config, inputs_of(config));
    Transformer<double> precise(config, inputs_of(config));
    Replicas replicas;
    for (const uint64_t seed : {1, 2}) {  // the replicas follow a change of the weights
      testing::randomize(model.parameters(), seed);
      testing::randomize(precise.parameters(), seed);
      const auto exact = at_once(batch, precise);
      const auto plain = at_once(batch, model);
      const ReplicaResult found = loss_and_gradient(replicas, model, batch, false);
      EXPECT_NEAR(found.loss, exact.first, 1e-6 * exact.first);
      testing::expect_as_accurate(found.gradient, plain.second, exact.second, 2);
    }
  }
}

TEST(Replicas, GiveTheSameBytesForAnyNumberOfThreads) {
  ModelConfig config = replica_config(2);
  config.dropout.residual = config.dropout.attention = config.dropout.ffn = 0.2;
  const Batch batch = uneven_batch(config);
  Transformer<float> model(config);
  model.parameters().allocate_gradients();
  testing::randomize(model.parameters(), 1);
  const auto with = [&](int threads) {
    return testing::with_threads(threads, [&] {
      Replicas replicas;
      return loss_and_gradient(replicas, model, batch, true);
    });
  };
  const ReplicaResult one = with(1), three = with(3);
  EXPECT_EQ(one.loss, three.loss);
  EXPECT_EQ(one.gradient, three.gradient);
}

}  // namespace
}  // namespace qkv
