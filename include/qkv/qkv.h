// Start here: everything that a program which links qkv can use.
//   qkv::Translator   translates and shows attention weights, from a run directory
//   qkv::Recommender  the next items after a history, from a run directory
//   qkv::Generator    goes on from a text, from the run directory of a language model
//   qkv::Embedder     vectors of texts, from the run directory of an encoder, a translator or a language model
//   qkv::import_model        makes a run directory of a model from elsewhere
//   qkv::export_model        makes a model for transformers of a run directory
//   qkv::quantize_run        makes one with weights in 8 bits
//   qkv::train_translation, qkv::train_recommendation, qkv::train_language   make a run directory from parallel text,
//                            from a log of events, from plain text
//   qkv::bleu, qkv::chrf     scores
//   qkv::attention    the kernel by itself, on arrays
#pragma once

#include "qkv/attention.h"       // IWYU pragma: export
#include "qkv/attention_map.h"   // IWYU pragma: export
#include "qkv/benchmark.h"       // IWYU pragma: export
#include "qkv/config.h"          // IWYU pragma: export
#include "qkv/embedder.h"        // IWYU pragma: export
#include "qkv/error.h"           // IWYU pragma: export
#include "qkv/export.h"          // IWYU pragma: export
#include "qkv/field.h"           // IWYU pragma: export
#include "qkv/generator.h"       // IWYU pragma: export
#include "qkv/import.h"          // IWYU pragma: export
#include "qkv/inspect.h"         // IWYU pragma: export
#include "qkv/language.h"        // IWYU pragma: export
#include "qkv/quantize.h"        // IWYU pragma: export
#include "qkv/recommendation.h"  // IWYU pragma: export
#include "qkv/recommender.h"     // IWYU pragma: export
#include "qkv/score.h"           // IWYU pragma: export
#include "qkv/text.h"            // IWYU pragma: export
#include "qkv/threads.h"         // IWYU pragma: export
#include "qkv/titles.h"          // IWYU pragma: export
#include "qkv/train.h"           // IWYU pragma: export
#include "qkv/translator.h"      // IWYU pragma: export
#include "qkv/version.h"         // IWYU pragma: export
