// Allocations in a training step. This program counts calls of malloc and related functions, including those of OpenMP,
// except calls from oneDNN: dnnl_sgemm allocates packed matrices, and no memory can be passed to it.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>

#include "qkv/train.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "train/objective.h"
#include "train/optimizer_state.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

void count(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  Dl_info info;
  const bool found = dladdr(caller, &info) != 0 && info.dli_fname;
  if (!found || std::string_view(info.dli_fname).find("libdnnl") == std::string_view::npos) allocations++;
}

}  // namespace

// The functions of glibc under their internal names.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, size);
}
void* realloc(void* old, size_t size) {
  count(__builtin_return_address(0));
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}
}

void* operator new(size_t size) {  // that of libstdc++ would hide its caller
  count(__builtin_return_address(0));
  if (void* p = __libc_malloc(size)) return p;
  throw std::bad_alloc();
}

namespace qkv {
namespace {

template <class F>
int64_t allocations_of(F&& f) {
  allocations = 0;
  counting = true;
  f();
  counting = false;
  return allocations;
}

TEST(Allocations, AreCounted) {
  std::vector<int> v;
  EXPECT_EQ(allocations_of([&] { v.reserve(100); }), 1);
  EXPECT_EQ(allocations_of([&] { v.reserve(100); }), 0);
}

// The state of training, without the data.
class Training {
 public:
  explicit Training(const Recipe& recipe) : recipe_(recipe), model_(recipe.model) {
    model_.parameters().allocate_gradients();
    model_.parameters().initialize(1);
    optimizer_.emplace(recipe_.training, model_.parameters());
  }

  void step(const Batch& batch) {
    Context context{arena_, true, 1, static_cast<uint32_t>(++step_)};
    const Loss loss = model_.loss_and_gradient(batch, objective_of(recipe_.training), context);
    optimizer_->update(step_, loss.tokens);
  }
  size_t activation_bytes() const { return arena_.high_water(); }

 private:
  Recipe recipe_;
  Transformer<float> model_;
  std::optional<OptimizerState> optimizer_;
  Arena arena_;
  int64_t step_ = 0;
};

TEST(Step, OfPresetTinyAllocatesNothingAfterTheFirst) {
  TranslationRecipe recipe = translation_preset("tiny");
  recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{40, 35, 30, 25, 20}, {40, 3, 17}, {5, 5, 5, 5, 5, 5}})
    batches.push_back(testing::random_batch(recipe.model, lengths, lengths, 1));
  for (const int threads : {1, 2}) {
    testing::with_threads(threads, [&] {
      Training training(recipe);
      training.step(batches.front());  // the largest; oneDNN creates its kernels, OpenMP its threads
      const size_t bytes = training.activation_bytes();
      for (size_t i = 0; i < batches.size(); i++)
        EXPECT_EQ(allocations_of([&] { training.step(batches[i]); }), 0) << "batch " << i << ", threads " << threads;
      EXPECT_EQ(training.activation_bytes(), bytes);
      return 0;
    });
  }
}

}  // namespace
}  // namespace qkv
