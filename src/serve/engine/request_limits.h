// Limits on what a request asks for, and what requests of several families have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/translator.h"
#include "serve/engine/service.h"

namespace qkv {

inline constexpr int64_t kMostWeights = 2'097'152;    // attention weights of an answer
inline constexpr int64_t kWeightBytes = 24;           // of JSON, at most about
inline constexpr int64_t kMostItems = 262'144;        // items of an answer, with the events that explain them
inline constexpr int64_t kMostDescribed = 524'288;    // tokens of an answer that describes each of them
inline constexpr int64_t kMostRepeated = 67'108'864;  // tokens that the events of a stream of translations repeat
inline constexpr int64_t kMostLogprobs = 1'048'576;   // tokens and alternatives of an answer with log-probabilities

// Throw HttpError 400 for more texts than max_texts (each counted `times`), or a text of more than max_text characters.
void check_texts(const ServerOptions& options, std::string_view name, const std::vector<std::string>& texts,
                 int64_t times = 1);

// Returns the most tokens that may be generated for a text: max_tokens, or if that is 0 the model's context, at least
// 4,096 (for texts that slide).
int64_t most_tokens(const ServerOptions& options, const ServedModel& model);

// Returns the options of a translation for which a request sets none, those of the model: the beam is at most max_beam,
// and the length at most most_tokens.
TranslateOptions usual_options(const ServerOptions& options, const ServedModel& model);

// Returns the options of the models of a chain before the last one, in order; none if the model is no chain.
std::vector<std::shared_ptr<const TranslateOptions>> options_before(
    const ServedModel& model, const std::function<TranslateOptions(const ServedModel&)>& options_of);

// Returns a number in a query. Throws HttpError 400, naming it.
int64_t query_number(std::string_view name, const std::string& text, int64_t least, int64_t most);

// Returns a seed for a request that has none, from 0 to 2⁵³ − 1, which every JSON reader can hold.
uint64_t draw_seed();

}  // namespace qkv
