#include "chat/jinja/budget.h"

#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr int64_t kSteps = 200'000, kStepsPerByte = 4;
constexpr int64_t kBytes = int64_t{6} << 20, kBytesPerByte = 8;

}  // namespace

Budget::Budget(size_t input_bytes)
    : steps_(kSteps + kStepsPerByte * static_cast<int64_t>(input_bytes)),
      bytes_(kBytes + kBytesPerByte * static_cast<int64_t>(input_bytes)),
      most_steps_(steps_),
      most_bytes_(bytes_) {}

void Budget::fail_steps() const { fail("chat template: takes more than {} steps for this input", most_steps_); }
void Budget::fail_bytes() const { fail("chat template: takes more than {} bytes for this input", most_bytes_); }
void Budget::fail_depth() const {
  fail("chat template: calls and expressions are nested more than {} deep", kMaxDepth);
}

}  // namespace qkv::jinja
