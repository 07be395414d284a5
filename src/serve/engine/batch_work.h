// Work of a call that is computed as a whole, in the batches of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/lines/recommend_lines.h"
#include "serve/engine/service.h"

namespace qkv {

// Convert texts to tokens, on the thread that calls: threads that compute never do, because a step would take as long
// as a text is. Throw HttpError as soon as the tokens are too many to wait.
std::vector<EmbedderTokens> encode(const CallPtr& call, const ModelPtr& model, const std::vector<std::string>& texts,
                                   EmbedOptions options);
std::vector<ClassifierTokens> encode(const CallPtr& call, const ModelPtr& model,
                                     const std::vector<ClassifierInput>& inputs, const ClassifyOptions& options);
// The same for pairs of a query, which is converted once, and each of the texts.
std::vector<ClassifierTokens> encode_pairs(const CallPtr& call, const ModelPtr& model, const std::string& query,
                                           const std::vector<std::string>& texts, const ClassifyOptions& options);

// Start work for a call, and call on_done with its result (Service::run). An exception ends the call. Throw HttpError
// 429 if it may not wait.

// Embeds texts that encode has returned for these options, together with those of other calls with the same options.
void embed(const CallPtr& call, const ModelPtr& model, std::vector<EmbedderTokens> texts, EmbedOptions options,
           std::function<void(const Embeddings&)> on_done);
// The same of texts that are given as tokens of the model (Embedder::embed_tokens).
void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::vector<int32_t>> texts,
           const EmbedOptions& options, std::function<void(const Embeddings&)> on_done);

// Classifies texts or pairs that encode has returned for these options.
void classify(const CallPtr& call, const ModelPtr& model, std::vector<ClassifierTokens> inputs,
              const ClassifyOptions& options, std::function<void(Classifications&&)> on_done);

// Recommends after histories, or finds similar items, together with other calls.
void recommend(const CallPtr& call, const ModelPtr& model, std::vector<RecommendLine> lines,
               std::function<void(std::vector<Recommendations>&&)> on_done);

// A function for a compute thread, by itself. cost: of its step.
struct Computation {
  int64_t cost = 0;
  std::function<std::string()> function;
};

// Calls these functions, perhaps several at the same time, and then on_done with the texts that they returned, one
// after the other. Counts no text for the log.
void compute(const CallPtr& call, const ModelPtr& model, std::vector<Computation> parts,
             std::function<void(std::string&&)> on_done);

}  // namespace qkv
