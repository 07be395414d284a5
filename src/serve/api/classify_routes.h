// The routes of classifiers that text-embeddings-inference (TEI) also has at POST /.
#pragma once

#include "serve/engine/call.h"

namespace qkv {

void answer_predict(const CallPtr& call);     // POST /predict
void answer_tei_rerank(const CallPtr& call);  // POST /rerank

}  // namespace qkv
