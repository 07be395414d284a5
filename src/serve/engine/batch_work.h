// Work of a call that is computed as a whole, in the batches of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qkv/recommend_lines.h"
#include "serve/engine/service.h"

namespace qkv {

// Returns the tokens of each text as Embedder::count_tokens does. Throws HttpError as soon as they are too many to
// wait.
std::vector<int64_t> count_tokens(const CallPtr& call, const ModelPtr& model, const std::vector<std::string>& texts,
                                  EmbedOptions options);

// Start work for a call, and call on_done with its result (Service::run). An exception ends the call. Throw HttpError
// 429 if it may not wait.

// Embeds texts, together with those of other calls with the same options. tokens: of each text, as count_tokens.
void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::string> texts, const EmbedOptions& options,
           std::vector<int64_t> tokens, std::function<void(const Embeddings&)> on_done);
// The same of texts that are given as tokens of the model (Embedder::embed_tokens).
void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::vector<int32_t>> texts,
           const EmbedOptions& options, std::function<void(const Embeddings&)> on_done);

// Classifies texts or pairs.
void classify(const CallPtr& call, const ModelPtr& model, std::vector<ClassifierInput> inputs,
              const ClassifyOptions& options, std::function<void(Classifications&&)> on_done);

// Recommends after histories, or finds similar items, together with other calls.
void recommend(const CallPtr& call, const ModelPtr& model, std::vector<RecommendLine> lines,
               std::function<void(std::vector<Recommendations>&&)> on_done);

// Calls `compute` on a compute thread, by itself, and then on_done with the text that it returned. Counts no text for
// the log.
void compute(const CallPtr& call, const ModelPtr& model, int64_t cost, std::function<std::string()> compute,
             std::function<void(std::string&&)> on_done);

}  // namespace qkv
