// The threads of OpenMP, which PyTorch on a CPU uses too: its wheel has an OpenMP runtime by the name of the system's,
// and a process loads only one of them.
#include <omp.h>

#include "bindings.h"
#include "qkv/system.h"

namespace qkv::python {
namespace {

class OpenMpPool : public ThreadPool {
  void run(int count, const std::function<void(int)>& work) override {
#pragma omp parallel num_threads(count)
    work(omp_get_thread_num());
  }
};

}  // namespace

void bind_openmp_pool(nanobind::module_& m) {
  m.def("use_openmp", [](bool use) {
    static OpenMpPool pool;
    set_thread_pool(use ? &pool : nullptr);
  });
}

}  // namespace qkv::python
