// The parts of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace qkv::python {

void bind_attention(nanobind::module_& m);
void bind_translator(nanobind::module_& m);
void bind_recommender(nanobind::module_& m);
void bind_embedder(nanobind::module_& m);

// Lets Python handle a signal that came; throws what its handler raises, as KeyboardInterrupt. Takes the GIL meanwhile.
void handle_signals();

}  // namespace qkv::python
