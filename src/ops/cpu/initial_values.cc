#include "ops/initial_values.h"

namespace qkv {

template <class Real>
void initial_values(const Init& init, Random random, Real* values, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double x = init.mean;
    if (init.uniform > 0) x += init.uniform * (2 * random.uniform() - 1);
    if (init.normal > 0) x += init.normal * random.normal();
    values[i] = static_cast<Real>(x);
  }
}

template void initial_values(const Init&, Random, float*, int64_t);
template void initial_values(const Init&, Random, double*, int64_t);

}  // namespace qkv
