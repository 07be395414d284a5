// The public API. Start here:
//   qkv::Translator   translates with a run directory, and shows attention weights
//   qkv::PivotTranslator   translates through a language in between, with a chain of translators
//   qkv::Recommender  recommends the next items after a history
//   qkv::Generator    generates text with a language model
//   qkv::TranslationLoop, qkv::GenerationLoop   serve many requests side by side, step by step
//   qkv::Embedder     computes vectors of texts with an encoder, a translator or a language model
//   qkv::Classifier   classifies texts and orders texts by a query
//   qkv::PartFolders, qkv::translate_lines, ...   run jobs over many files, like the program
//   qkv::import_model, qkv::export_model   convert models from and to other formats
//   qkv::merge_run                         merges an adapter (LoRA) into its base
//   qkv::quantize_run                      converts the weights of a run to 8 bits
//   qkv::train_translator, qkv::train_recommender, qkv::train_language_model, qkv::train_encoder
//                     train a run directory on parallel text, a log of events, or plain text
//   qkv::train_embedder, qkv::train_classifier
//                     train a run directory on rows of texts: pairs, scores, labels
//   qkv::mine_hard_negatives   finds negatives for rows of pairs, to train an embedder on
//   qkv::bleu, qkv::chrf   score translations
//   qkv::evaluate_texts    measures a classifier or an embedder on a file of rows
//   qkv::layers::Encoder, qkv::layers::MultiHeadAttention, ...   run single layers forward and backward
//   qkv::attention         computes attention on arrays
#pragma once

#include "qkv/attention.h"            // IWYU pragma: export
#include "qkv/attention_map.h"        // IWYU pragma: export
#include "qkv/beam_trace.h"           // IWYU pragma: export
#include "qkv/classifier.h"           // IWYU pragma: export
#include "qkv/classifier_training.h"  // IWYU pragma: export
#include "qkv/config.h"               // IWYU pragma: export
#include "qkv/embedder.h"             // IWYU pragma: export
#include "qkv/embedder_training.h"    // IWYU pragma: export
#include "qkv/encoder.h"              // IWYU pragma: export
#include "qkv/error.h"                // IWYU pragma: export
#include "qkv/evaluate.h"             // IWYU pragma: export
#include "qkv/export.h"               // IWYU pragma: export
#include "qkv/field.h"                // IWYU pragma: export
#include "qkv/generator.h"            // IWYU pragma: export
#include "qkv/hard_negatives.h"       // IWYU pragma: export
#include "qkv/hidden_states.h"        // IWYU pragma: export
#include "qkv/import.h"               // IWYU pragma: export
#include "qkv/jobs.h"                 // IWYU pragma: export
#include "qkv/language.h"             // IWYU pragma: export
#include "qkv/layers.h"               // IWYU pragma: export
#include "qkv/logit_lens.h"           // IWYU pragma: export
#include "qkv/matrix.h"               // IWYU pragma: export
#include "qkv/patching.h"             // IWYU pragma: export
#include "qkv/pivot.h"                // IWYU pragma: export
#include "qkv/pooling_choice.h"       // IWYU pragma: export
#include "qkv/recommendation.h"       // IWYU pragma: export
#include "qkv/recommender.h"          // IWYU pragma: export
#include "qkv/runs.h"                 // IWYU pragma: export
#include "qkv/serving.h"              // IWYU pragma: export
#include "qkv/system.h"               // IWYU pragma: export
#include "qkv/text.h"                 // IWYU pragma: export
#include "qkv/text_evaluation.h"      // IWYU pragma: export
#include "qkv/text_head.h"            // IWYU pragma: export
#include "qkv/text_loss.h"            // IWYU pragma: export
#include "qkv/train.h"                // IWYU pragma: export
#include "qkv/translator.h"           // IWYU pragma: export
