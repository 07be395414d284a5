// The first request of a model, before clients can reach it.
#pragma once

#include "serve/engine/served_model.h"

namespace qkv {

// Computes a short request and waits for its end, so that the weights are in memory, and caches and threads are made.
// The model has been started. An error is that of later requests, and does not matter here.
void warm_up(ServedModel& model);

}  // namespace qkv
