// Small matrices as JSON: an array of rows, with null for −∞.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "program/explain/explain.h"

namespace qkv {

// Throws Error that begins with `where`: not rows of the same length, of 1 to 64 numbers. hides: null is −∞.
NumberTable table_from_json(const nlohmann::json& json, const std::string& where, bool hides);
nlohmann::json table_to_json(const NumberTable& table);

}  // namespace qkv
