// Messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "qkv/error.h"

namespace qkv::testing {

// The message of the Error that f throws; empty if it throws none.
template <class F>
std::string error_if_any(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// The same, where none is a failure.
template <class F>
std::string error_of(F&& f) {
  const std::string error = error_if_any(f);
  EXPECT_NE(error, "") << "no Error was thrown";
  return error;
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << text << "\"";
}

}  // namespace qkv::testing
