// The contents of a run of each kind, read and written: encoders, classifiers, language models, recommenders and
// translators. run.h creates and loads whole runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/log/split.h"
#include "data/log/transitions.h"
#include "io/runs/chat_files.h"
#include "io/runs/run_directory.h"
#include "io/runs/saved_interactions.h"
#include "io/runs/sentence_lengths.h"
#include "io/runs/translation_config.h"
#include "model/heads/classification_head.h"
#include "model/heads/dense_layers.h"
#include "model/transformer.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/runs.h"
#include "text/text_codec.h"

namespace qkv {

// The tokens around a text; empty if there are none.
struct TextEdges {
  std::vector<int32_t> before, after;
};
// Throws Error, beginning with `where`, for a token that the vocabulary lacks.
TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where);

// Returns the text that the tokenizer reads: with the prefix, and normalized as the configuration says.
std::string prepare_text(const EmbeddingConfig& config, const std::string& text);

// Returns the number of tokens of an encoder, or of a decoder alone.
inline int64_t tokens_of_text(const ModelConfig& config) {
  return config.has_encoder() ? config.source_vocab : config.target_vocab;
}

// A model that embeds texts. It is an encoder alone, or a decoder alone, which is causal.
struct EncoderRun {
  static constexpr RunKind kKind = RunKind::encoder;

  ModelConfig config;  // an encoder or a decoder alone, with at least the codec's tokens
  EmbeddingConfig embedding;
  TextCodec codec;
  TextEdges edges = {};                                    // set when read
  std::shared_ptr<const StandaloneDense> dense = nullptr;  // set when read; null if there are none
  std::unique_ptr<Transformer<float>> model = nullptr;     // null until the weights are loaded

  // Reads and writes the files of this kind: embedding.json, the tokenizer and the linear layers. Nothing in the
  // directory is trusted. Throws Error, naming file and field.
  static EncoderRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

// An encoder with a head, whose weights are in classifier.safetensors.
struct ClassifierRun : EncoderRun {
  static constexpr RunKind kKind = RunKind::classifier;

  ClassificationConfig classification = {};
  std::shared_ptr<const StandaloneLabelHead> head = nullptr;  // set when read

  // Reads and writes the files of an encoder, classification.json and, if there is a head, its weights. Nothing in the
  // directory is trusted. Throws Error, naming file and field.
  static ClassifierRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

// The tokens around a text.
struct TextEnds {
  int32_t start = 0;
  std::vector<int32_t> ends;   // at least one
  bool starts_prompts = true;  // whether `start` precedes every prompt; otherwise only an empty one

  // Returns the tokens that a model reads to continue a prompt. is_complete: the prompt has its start token already, or
  // is to have none.
  std::vector<int32_t> beginning(std::span<const int32_t> prompt, bool is_complete = false) const;
};

// Throws Error, beginning with `where`, for a token that the vocabulary lacks, and if no token ends a text.
TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where);

struct LanguageRun {
  static constexpr RunKind kKind = RunKind::language_model;

  ModelConfig config;  // a decoder alone, with the codec's tokens
  LanguageConfig language;
  TextCodec codec;
  ChatFiles chat = {};
  TextEnds ends = {};                                   // set when read
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: language.json and the file of its unit. Nothing in the directory is
  // trusted. Throws Error, naming file and field.
  static LanguageRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

struct RecommenderRun {
  static constexpr RunKind kKind = RunKind::recommender;

  ModelConfig config;  // decoder-only, with the items of the log as tokens
  ItemInputs items;
  RecommendationConfig recommendation;
  SavedInteractions log;
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded
  std::optional<TransitionConfig> transitions = {};     // if training fitted them

  // Reads and writes the files of this kind: recommendation.json, the log with the names of its users and items, and
  // transitions.json.
  // Nothing in the directory is trusted. Throws Error, naming file and field.
  static RecommenderRun read(const RunDirectory& run, const ModelConfig& config, const ItemInputs& items);
  void write(const RunDirectory& run) const;
};

// Returns the split by which a recommender is trained on a log.
Split split_of(const RecommendationConfig& config, const Interactions& log);

// Returns the transitions of all events of the run's log, or nothing if they do not change the scores.
std::unique_ptr<Transitions> transitions_of(const RecommenderRun& run);

// Reads recommendation.json alone, without the log. Throws Error, naming file and field.
RecommendationConfig read_recommendation(const RunDirectory& run);

struct TranslatorRun {
  static constexpr RunKind kKind = RunKind::translator;

  ModelConfig config;  // encoder and decoder; vocabularies of the tokenizers' sizes
  TokenizerPair tokenizers;
  TranslationConfig translation;
  TranslationTokens tokens = {};                        // `translation` as ids; set when read
  std::vector<std::string> abbreviations = {};          // of the source, without their final full stop
  std::optional<SentenceLengths> lengths = {};          // of the training text, if it is known
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: translation.json, the tokenizers and, if there are any, the abbreviations.
  // Nothing in the directory is trusted. Throws Error, naming file and field, or line.
  static TranslatorRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
