// The families of routes: each table is defined in the file of its name.
#pragma once

#include <memory>
#include <span>

#include "serve/engine/route.h"

namespace qkv {

std::span<const Route> classify_routes();
std::span<const Route> gorse_routes();
std::span<const Route> libre_routes();
std::span<const Route> native_routes();
std::span<const Route> openai_routes();
std::span<const Route> site_routes();
std::span<const Route> tei_routes();
std::span<const Route> token_routes();

// Routes of classifiers that text-embeddings-inference (TEI) also has at POST /.
void answer_predict(const std::shared_ptr<Call>& call);     // POST /predict
void answer_tei_rerank(const std::shared_ptr<Call>& call);  // POST /rerank

}  // namespace qkv
