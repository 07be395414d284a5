// The presets: recipes with a name.
#include "core/fail.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"

namespace qkv {
namespace {

// The architecture of Llama, with a feed-forward layer of the same number of weights.
void make_modern(ModelConfig& m) {
  m.norm.kind = NormKind::rms;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  m.positions = Positions::rotary;
  m.activation = Activation::silu;
  m.gated_ffn = true;
  m.ffn = m.ffn * 2 / 3 / 8 * 8;
  m.ffn_bias = m.attention.input_bias = m.attention.output_bias = false;
}

// Sets the values that hold before a recommender is fitted to its log (train/auto_preset.h).
void make_fitting(RecommendationRecipe& r) {
  r.fit = true;
  r.training.schedule = Schedule::constant;
  r.training.learning_rate = 1e-3;
  r.training.patience = 8;
}

}  // namespace

TranslationRecipe translation_preset(const std::string& name) {
  TranslationRecipe r;
  ModelConfig& m = r.model;
  TrainingConfig& t = r.training;
  if (name == "base") {  // Vaswani et al. (2017)
    t.learning_rate = 7e-4;
    t.warmup_steps = 4000;
    r.text.vocab_size = 16000;
    return r;
  }
  if (name == "small") {
    m.encoder_layers = m.decoder_layers = 6;
    m.d_model = 256;
    m.attention.heads = 4;
    m.attention.key_width = m.attention.value_width = 64;
    m.ffn = 1024;
    m.dropout.residual = 0.2;
    t.learning_rate = 2e-3;
    return r;
  }
  if (name == "tiny" || name == "tiny-modern") {
    m.encoder_layers = m.decoder_layers = 4;
    m.d_model = 128;
    m.attention.heads = 4;
    m.attention.key_width = m.attention.value_width = 32;
    m.ffn = 256;
    m.dropout.residual = 0.3;
    if (name == "tiny-modern") make_modern(m);
    return r;
  }
  fail("unknown preset \"{}\" (choose from tiny, tiny-modern, small, base)", name);
}

RecommendationRecipe recommendation_preset(const std::string& name) {
  RecommendationRecipe r;
  ModelConfig& m = r.model;
  TrainingConfig& t = r.training;
  RecommendationConfig& c = r.recommendation;
  m.encoder_layers = 0;
  m.shared_embeddings = false;
  m.decoder_layers = 2;
  m.positions = Positions::learned;
  m.norm.final = true;
  m.max_length = 200;
  m.dropout.residual = m.dropout.attention = m.dropout.ffn = 0.2;
  m.attention.heads = 1;
  m.norm.epsilon = 1e-8;
  t.learning_rate = 2e-3;
  t.warmup_steps = 100;
  t.schedule = Schedule::cosine;
  t.beta2 = 0.999;
  t.epsilon = 1e-8;
  t.label_smoothing = 0;
  t.batch_tokens = 16384;
  t.eval_every = 0;
  t.save_every = 0;
  t.patience = 0;
  t.average = 0;
  t.ema_decay = 0.998;
  if (name == "sasrec") {
    m.norm.position = NormPosition::query;
    m.d_model = m.attention.key_width = m.attention.value_width = m.ffn = 50;
    c.loss = ItemLoss::bce;
    t.max_epochs = 300;
    return r;
  }
  if (name == "films" || name == "auto") {
    m.norm.position = NormPosition::pre;
    m.activation = Activation::gelu;
    m.d_model = m.attention.key_width = m.attention.value_width = 64;
    m.ffn = 256;
    m.dropout.residual = m.dropout.attention = m.dropout.ffn = 0.1;
    t.max_epochs = 150;
    t.initial_deviation = 0.02;
    c.positions_from_end = false;
    if (name == "auto") make_fitting(r);
    return r;
  }
  fail("unknown preset \"{}\" (choose from auto, films, sasrec)", name);
}

LanguageRecipe language_preset(const std::string& name) {
  LanguageRecipe r;
  ModelConfig& m = r.model;
  TrainingConfig& t = r.training;
  m.encoder_layers = 0;
  m.shared_embeddings = false;
  m.positions = Positions::learned;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  m.scale_embeddings = false;
  m.activation = Activation::gelu_tanh;
  m.dropout.residual = 0;
  t.optimizer = Optimizer::adamw;
  t.weight_decay = 0.1;
  t.clip_norm = 1;
  t.schedule = Schedule::cosine;
  t.beta2 = 0.99;
  t.epsilon = 1e-8;
  t.label_smoothing = 0;
  t.initial_deviation = 0.02;
  t.selection = Selection::loss;
  t.average = 0;
  t.ema_decay = 0;
  t.learning_rate = 1e-3;
  t.warmup_steps = 100;
  const auto shape = [&](int64_t layers, int64_t d, int64_t heads, int64_t context) {
    m.decoder_layers = layers;
    m.d_model = d;
    m.attention.heads = heads;
    m.attention.key_width = m.attention.value_width = d / heads;
    m.ffn = 4 * d;
    m.max_length = context;
  };
  if (name == "lm-small" || name == "lm-med") {
    m.attention.input_bias = m.attention.output_bias = m.ffn_bias = false;
    m.norm.kind = NormKind::layer_no_bias;
    m.positions = Positions::rotary;
  }
  if (name == "lm-small") {
    shape(4, 128, 4, 64);
    t.learning_rate = 3e-3;
    t.batch_tokens = 12 * 64;
    t.max_steps = 2000;
    t.eval_every = t.save_every = 250;
    return r;
  }
  if (name == "lm-med") {
    shape(6, 384, 6, 256);
    m.dropout.residual = m.dropout.attention = 0.2;
    t.learning_rate = 2e-3;
    t.batch_tokens = 8 * 256;
    t.max_steps = 3000;
    t.eval_every = t.save_every = 250;
    return r;
  }
  if (name == "gpt2") {
    shape(12, 768, 12, 1024);
    m.dropout.residual = m.dropout.attention = 0.1;
    r.language.unit = TextUnit::bytes;
    t.learning_rate = 6e-4;
    t.beta2 = 0.95;
    t.warmup_steps = 2000;
    t.batch_tokens = 16 * 1024;
    t.max_steps = 100000;
    t.eval_every = t.save_every = 1000;
    return r;
  }
  fail("unknown preset \"{}\" (choose from lm-small, lm-med, gpt2)", name);
}

EncoderRecipe encoder_preset(const std::string& name) {
  EncoderRecipe r;
  ModelConfig& m = r.model;
  TrainingConfig& t = r.training;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = false;
  m.token_head = TokenHead::dense;
  m.tied_output = m.output_bias = true;
  m.activation = Activation::gelu;
  m.dropout.residual = m.dropout.attention = 0.1;
  t.optimizer = Optimizer::adamw;
  t.weight_decay = 0.01;
  t.clip_norm = 1;
  t.schedule = Schedule::cosine;
  t.label_smoothing = 0;
  t.initial_deviation = 0.02;
  t.selection = Selection::loss;
  t.average = 0;
  t.ema_decay = 0;
  const auto shape = [&](int64_t layers, int64_t d, int64_t heads, int64_t ffn, int64_t context) {
    m.encoder_layers = layers;
    m.d_model = d;
    m.attention.heads = heads;
    m.attention.key_width = m.attention.value_width = d / heads;
    m.ffn = ffn;
    m.max_length = context;
  };
  const auto schedule = [&](double rate, int64_t warmup, int64_t steps, int64_t tokens, int64_t every) {
    t.learning_rate = rate;
    t.warmup_steps = warmup;
    t.max_steps = steps;
    t.batch_tokens = tokens;
    t.eval_every = t.save_every = every;
  };
  if (name == "encoder-tiny") {
    shape(4, 128, 4, 512, 128);
    m.positions = Positions::rotary;
    m.norm.position = NormPosition::pre;
    m.norm.final = true;
    m.dropout.residual = m.dropout.attention = 0;
    schedule(3e-3, 200, 5000, 4096, 500);
    return r;
  }
  if (name == "bert-base") {  // Devlin et al. (2019)
    shape(12, 768, 12, 3072, 512);
    m.positions = Positions::learned;
    m.embedding_norm = true;
    m.norm.epsilon = 1e-12;
    r.encoder.vocab_size = 30000;
    schedule(1e-4, 10000, 1000000, 16384, 1000);
    return r;
  }
  if (name == "modernbert-base") {  // Warner et al. (2024)
    shape(22, 768, 12, 1152, 1024);
    m.positions = Positions::rotary;
    m.rotary.base = 160000;
    m.rotary.local_base = 10000;
    m.attention.window = 65;
    m.attention.layer_pattern = "gll";
    m.embedding_norm = true;
    m.gated_ffn = true;
    m.ffn_bias = m.attention.input_bias = m.attention.output_bias = false;
    m.norm.kind = NormKind::layer_no_bias;
    m.norm.position = NormPosition::pre;
    m.norm.final = true;
    m.norm.first = false;
    m.dropout.residual = m.dropout.attention = 0;
    r.encoder.vocab_size = 50000;
    r.encoder.mask_share = 0.3;
    schedule(8e-4, 3000, 1000000, 16384, 1000);
    return r;
  }
  fail("unknown preset \"{}\" (choose from encoder-tiny, bert-base, modernbert-base)", name);
}

}  // namespace qkv
