// What an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "qkv/error.h"

namespace qkv::testing {

// The message of the Error that f throws; empty, and a failure, if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace qkv::testing
