#include "analysis/hidden_states.h"

#include <algorithm>
#include <utility>

#include "core/to_size.h"

namespace qkv {

HiddenStates states_of(const Stack<float>::Saved& side, Matrix<const float> last, std::vector<std::string> pieces) {
  HiddenStates found;
  found.pieces = std::move(pieces);
  found.states = std::ssize(side.inputs) + 1;
  found.tokens = last.rows;
  found.width = last.cols;
  found.values.resize(to_size(found.states * found.tokens * found.width));
  float* to = found.values.data();
  const auto add = [&](Matrix<const float> state) {
    for (int64_t n = 0; n < state.rows; n++) to = std::copy_n(state.row(n), state.cols, to);
  };
  for (const Matrix<const float>& state : side.inputs) add(state);
  add(last);
  return found;
}

HiddenStates hidden_states(const Transformer<float>& model, const Packed& text, Arena& arena,
                           std::vector<std::string> pieces) {
  const Arena::Scope scope(arena);
  Context context{.arena = arena, .inference = true};
  Transformer<float>::Saved saved;
  const bool encodes = model.config().has_encoder();
  if (encodes)
    model.encode(text, context, saved);
  else
    model.forward({}, text, context, saved);
  return states_of(encodes ? saved.encoder : saved.decoder, encodes ? saved.memory : saved.h, std::move(pieces));
}

}  // namespace qkv
