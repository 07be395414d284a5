// A run that is served: what it is, what waits for it, and what computes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "documents/languages.h"
#include "qkv/chat.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/generator.h"
#include "qkv/recommender.h"
#include "qkv/runs.h"
#include "qkv/serving.h"
#include "qkv/translator.h"
#include "serve/engine/compute.h"
#include "serve/engine/model_queue.h"
#include "serve/engine/route.h"
#include "serve/engine/served_run.h"
#include "serve/engine/served_tokenizer.h"
#include "serve/http/callback_batch.h"
#include "serve/metrics/metrics.h"

namespace qkv {

class ServedModel;

// One compute thread's share of a model: its own loops, and the model's batches.
class ModelLane : public Lane {
 public:
  ModelLane(ServedModel& model, const LoopLimits& limits);
  bool step() override;

  std::optional<TranslationLoop> translations;  // of a translator
  std::optional<GenerationLoop> generations;    // of a language model

  // Called by events of the loops, within a step: runs a function on the prepare thread once the step has ended. So a
  // step wakes that thread once, however many texts it continues.
  void post(CallbackBatch::Function event) { events_.add(std::move(event)); }

  struct Hooks {
    std::function<void(double)> on_busy;       // called with the seconds of each step
    std::function<void(CallbackBatch&)> send;  // sends them to the prepare thread
  };
  Hooks hooks;
  // Bytes of keys and values. A translation uses what is reserved for it.
  std::atomic<int64_t> reserved_bytes = 0, used_bytes = 0;

 private:
  ServedModel& model_;
  CallbackBatch events_;  // of the step
};

class ServedModel {
 public:
  // Loads the run; embeds: a translator or language model answers embeddings, too. Throws Error, naming the file.
  // clients and metrics must outlive the model.
  ServedModel(const ServedRun& run, bool embeds, const QueueLimits& limits, ClientCounts& clients,
              ModelMetrics& metrics);
  // Makes a chain of translators that are served, which compute for it. Throws Error for languages that are not valid.
  ServedModel(const ServedRun& run, std::vector<std::shared_ptr<ServedModel>> chain, const QueueLimits& limits,
              ClientCounts& clients, ModelMetrics& metrics);
  ~ServedModel();

  const std::string name;
  const RunInfo info;
  const std::vector<std::shared_ptr<ServedModel>> chain = {};  // the translators of a chain, which has no lanes
  std::vector<LanguagePair> chain_languages = {};              // those that each of them translates between
  std::string source_language, target_language;                // of a translator; "und" if unknown

  // Those that the kind of run and the options give.
  std::optional<Translator> translator;
  std::optional<Generator> generator;
  std::optional<Recommender> recommender;
  std::optional<Titles> titles;  // of a recommender
  std::string titles_doubt;      // why no title will be shown, with the file; "" if there is no reason
  std::optional<Embedder> embedder;
  std::optional<Classifier> classifier;
  std::optional<Chat> chat;  // of a language model
  std::string chat_problem;  // why the model's own template is not used: " (…)"; "" if it has none or is used
  std::optional<ServedTokenizer> tokenizer;  // of all but a recommender
  int64_t loaded = 0;                        // seconds since 1970
  // The values of what a request does not set, of a translator or a language model.
  TranslateOptions translate_defaults = {};
  GenerateOptions generate_defaults = {};

  bool serves(ModelUse use) const;
  // Returns the codes of a translator with several languages that requests choose from; none for others and chains.
  std::vector<std::string> languages() const;
  // Sets the languages of the options of a translator of a chain.
  void set_languages_of_step(size_t step, TranslateOptions& options) const;
  // Returns the translator that reads the text, of a chain its first one.
  const Translator& reader() const { return chain.empty() ? *translator : chain.front()->reader(); }
  bool is_int8() const;                                         // a chain: all of its translators
  int64_t max_length() const { return info.model.max_length; }  // of a chain, the smallest

  ModelMetrics& metrics() { return metrics_; }

  ModelQueue queue;
  BatchQueue batches;

  // Start and end computing on these threads. Lanes can be used after start.
  void start(std::span<ComputeThread* const> threads, const LoopLimits& limits, const ModelLane::Hooks& hooks);
  void stop();
  ModelSources cache_sources() const;  // as long as the model is there
  // Returns the lane with the least work, of `cost` more.
  ModelLane* take_lane(int64_t cost);
  void wake(const ModelLane& lane);
  void push(std::shared_ptr<BatchJob> job);  // of the batches

 private:
  struct LaneThread {
    std::shared_ptr<ModelLane> lane;
    ComputeThread* thread = nullptr;
  };

  void load(const ServedRun& run, bool embeds);
  LanguagePair languages_of(const ServedRun& run) const;
  void set_languages(const LanguagePair& pair);
  void set_chat(const ServedRun& run);

  ModelMetrics& metrics_;
  std::vector<LaneThread> lanes_;
};

// Returns the languages that a model translates between in a chain: those that are given for one with several, its own
// otherwise. Throws Error, naming the chain, for a model that cannot be in it.
LanguagePair languages_in_chain(const std::string& chain, const ChainMember& member, const ServedModel& model);

// Computes a short request and waits for its end, so that the weights are in memory, and caches and threads are made.
// The model has been started. An error is that of later requests, and does not matter here.
void warm_up(ServedModel& model);

}  // namespace qkv
