// The attention op on one head of an explanation.
#pragma once

#include <string>

#include "program/explain/attention_steps.h"
#include "qkv/attention.h"

namespace qkv {

std::string which_head(const ExplainedAttention& in, size_t h);  // ", head 1 of 2", or "" if there is only one
std::string lower_case(std::string title);                       // with a lowercase first letter

// The argument of the op. It refers to `in` and to the steps of `head`.
AttentionInput<double> attention_op_input(const ExplainedAttention& in, const HeadSteps& head);

}  // namespace qkv
