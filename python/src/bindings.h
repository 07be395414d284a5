// The parts of the module.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace qkv::python {

void bind_analysis(nanobind::module_& m);
void bind_attention(nanobind::module_& m);
void bind_translator(nanobind::module_& m);
void bind_pivot(nanobind::module_& m);
void bind_recommender(nanobind::module_& m);
void bind_evaluate(nanobind::module_& m);
void bind_classifier(nanobind::module_& m);
void bind_embedder(nanobind::module_& m);
void bind_generator(nanobind::module_& m);
void bind_heads(nanobind::module_& m);
void bind_import(nanobind::module_& m);
void bind_layers(nanobind::module_& m);
void bind_layer_functions(nanobind::module_& m);
void bind_export(nanobind::module_& m);
void bind_score(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_part_folders(nanobind::module_& m);
void bind_openmp_pool(nanobind::module_& m);

// Converts bytes to a str; invalid UTF-8 becomes U+FFFD.
nanobind::str text_of(std::string_view bytes);

// Lets Python handle pending signals, with the GIL held. Throws what their handlers raise, such as KeyboardInterrupt.
void handle_signals();

}  // namespace qkv::python
