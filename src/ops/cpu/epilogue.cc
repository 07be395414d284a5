#include "ops/epilogue.h"

#include "core/system/threads.h"
#include "ops/activation.h"
#include "ops/softcap.h"

namespace qkv {

template <class Real>
void Epilogue<Real>::apply(Matrix<Real> result, const Block& block) const {
  switch (kind_) {
    case Kind::none:
      return;
    case Kind::activation:
      return qkv::activation<Real>(activation_, result, drop_, y_, block);
    case Kind::activation_backward:
      return qkv::activation_backward<Real>(activation_, x_, result, drop_, result, block);
    case Kind::softcap:
      return qkv::softcap<Real>(result.block(block), cap_);
  }
}

template <class Real>
void apply(const Epilogue<Real>& epilogue, Matrix<Real> result) {
  if (!epilogue) return;
  parallel_blocks(result.rows, 64, [&](int64_t begin, int64_t end) {
    epilogue.apply(result, {begin, end, 0, result.cols});
  });
}

template class Epilogue<float>;
template class Epilogue<double>;
template void apply(const Epilogue<float>&, Matrix<float>);
template void apply(const Epilogue<double>&, Matrix<double>);

}  // namespace qkv
