// Finds the first output of a pass over a model that is not finite. Without a check, an op costs one comparison more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/matrix.h"

namespace qkv {

// The side of the batch whose tokens are the rows of an output.
enum class TokenSide { none, source, target };

// An output that is not finite.
struct NotFinite {
  std::string place;                 // such as "decoder layer 3, feed-forward, linear, forward"
  TokenSide side = TokenSide::none;  // of the rows
  std::vector<int64_t> rows = {};    // that are not finite: tokens of the batch; empty without a side
};

enum class Pass { forward, backward };

// The outputs of one pass over a batch, in the order in which they are computed. Not thread-safe.
class FiniteCheck {
 public:
  // A part of the model, in which the outputs are while it exists. `check` may be null.
  class Part {
   public:
    // Rows are tokens of the side of the surrounding part.
    Part(FiniteCheck* check, const char* name, int64_t number = -1);
    Part(FiniteCheck* check, const char* name, TokenSide side);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    void rename(const char* name);

   private:
    FiniteCheck* check_;
  };

  // Checks the output of an op, whose first row is token `first`.
  template <class Real>
  void output(const char* op, Pass pass, Matrix<const Real> m, int64_t first = 0);
  // Checks the gradient of parameters.
  template <class Real>
  void gradient(const char* op, Matrix<const Real> m);

  // Takes what another check found in a part of the batch, whose first tokens are these.
  void take(const FiniteCheck& other, int64_t first_source, int64_t first_target);

  const std::optional<NotFinite>& found() const { return found_; }

 private:
  struct Entry {
    const char* name;
    int64_t number;
    TokenSide side;
  };
  TokenSide side() const { return parts_.empty() ? TokenSide::none : parts_.back().side; }
  std::string place(const char* op, const char* pass) const;

  std::vector<Entry> parts_;  // the outermost first
  std::optional<NotFinite> found_;
};

}  // namespace qkv
