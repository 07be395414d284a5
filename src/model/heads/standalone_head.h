// A head with parameters of its own, for inference. In training, they belong to the list of the model.
#pragma once

#include <utility>

#include "model/layers/context.h"
#include "model/layers/parameter.h"

namespace qkv {

template <class Layers>
class StandaloneHead {
 public:
  // Declares and allocates the parameters, all zero. `args` are those of the layers after the list.
  template <class... Args>
  explicit StandaloneHead(const Args&... args) : layers_(parameters_, args...) {
    parameters_.allocate();
  }
  StandaloneHead(const StandaloneHead&) = delete;
  StandaloneHead& operator=(const StandaloneHead&) = delete;

  ParameterList<float>& parameters() { return parameters_; }
  const ParameterList<float>& parameters() const { return parameters_; }
  const Layers& layers() const { return layers_; }

  // v: [N, in] -> [N, out], from the arena. A row does not depend on the others.
  Matrix<float> forward(Matrix<float> v, Context& c) const {
    typename Layers::Saved saved;
    return layers_.forward(v, c, saved);
  }

 private:
  ParameterList<float> parameters_;
  Layers layers_;
};

}  // namespace qkv
