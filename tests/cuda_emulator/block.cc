#include "block.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace qkv::cuda::emulator {

Index threadIdx, blockIdx, blockDim;

namespace {

constexpr unsigned kLanes = 32;
constexpr size_t kStack = 64 << 10;

// Leaves a place of a stack for one of another, and returns when that place is taken up again. swapcontext would call
// the system each time.
void switch_stacks(jmp_buf& from, jmp_buf& to) {
  if (_setjmp(from) == 0) _longjmp(to, 1);
}

// A stack that threads run on, one after the other.
struct Fiber {
  Fiber() : stack(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (stack == MAP_FAILED) throw std::bad_alloc();
  }
  ~Fiber() { munmap(stack, kStack); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void* stack;
  bool has_begun = false;
  jmp_buf place = {};  // where it was left
};

enum class State { ready, at_block, at_warp, done };

struct Thread {
  State state = State::ready;
  Collective collective = {};
  Fiber* fiber = nullptr;  // once it has begun
};

struct Warp {
  std::array<Lanes, 2> lanes;  // of this exchange and of the last
  std::array<uint8_t, kLanes> exchanges = {};
};

class Block {
 public:
  void run(unsigned threads, const std::function<void()>& thread) {
    body_ = &thread;
    threads_.assign(threads, {});
    warps_.assign((threads + kLanes - 1) / kLanes, {});
    idle_.clear();
    for (const auto& fiber : fibers_) idle_.push_back(fiber.get());
    is_reversed_ = !is_reversed_;
    const auto warps = static_cast<unsigned>(warps_.size());
    do {
      for (unsigned w = 0; w < warps; w++) run_warp(is_reversed_ ? warps - 1 - w : w);
    } while (release(0, threads, State::at_block));
    if (std::ranges::any_of(threads_, [](const Thread& t) { return t.state != State::done; })) {
      fibers_.clear();  // with what is left on their stacks
      throw std::logic_error("threads of a block wait for others that do not come");
    }
  }

  void wait(State state, Collective kind = {}) {
    const unsigned t = threadIdx.x;
    threads_[t].state = state, threads_[t].collective = kind;
    switch_stacks(threads_[t].fiber->place, scheduler_);
  }

  Warp& warp() { return warps_[threadIdx.x / kLanes]; }

 private:
  // Runs the threads of a warp until all have ended or wait for the block.
  void run_warp(unsigned w) {
    const unsigned begin = w * kLanes, end = std::min<unsigned>(begin + kLanes, static_cast<unsigned>(threads_.size()));
    begin_ = begin, count_ = end - begin;
    do {
      for (next_ = 0; next_ < count_; next_++)
        if (threads_[thread_at(next_)].state == State::ready) resume(thread_at(next_));
    } while (same_collective(begin, end) && release(begin, end, State::at_warp));
  }

  // Returns the thread of the warp that runs at this place of the order.
  unsigned thread_at(unsigned place) const { return begin_ + (is_reversed_ ? count_ - 1 - place : place); }

  bool same_collective(unsigned begin, unsigned end) const {
    return std::all_of(threads_.begin() + begin, threads_.begin() + end, [&](const Thread& t) {
      return t.state == State::at_warp && t.collective == threads_[begin].collective;
    });
  }

  // Lets threads continue if all of them that have not ended are in this state. Returns whether there are any.
  bool release(unsigned begin, unsigned end, State state) {
    const auto first = threads_.begin() + begin, last = threads_.begin() + end;
    if (!std::all_of(first, last, [&](const Thread& t) { return t.state == state || t.state == State::done; }))
      return false;
    bool any = false;
    for (auto t = first; t != last; ++t)
      if (t->state == state) t->state = State::ready, any = true;
    return any;
  }

  void resume(unsigned t) {
    threadIdx.x = t;
    Thread& thread = threads_[t];
    if (!thread.fiber) thread.fiber = take_fiber();
    if (std::exchange(thread.fiber->has_begun, true))
      switch_stacks(scheduler_, thread.fiber->place);
    else
      begin(*thread.fiber);
  }

  // Runs a fiber that has not begun until it waits.
  void begin(Fiber& fiber) {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack, context.uc_stack.ss_size = kStack, context.uc_link = nullptr;
    makecontext(&context, &Block::run_threads, 0);
    if (_setjmp(scheduler_) == 0) setcontext(&context);
  }

  Fiber* take_fiber() {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>());
      return fibers_.back().get();
    }
    Fiber* const fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  // Runs threads on a fiber: one, and then those of its warp that follow in the order and have not begun.
  static void run_threads();

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  jmp_buf scheduler_ = {};                     // where it has resumed a fiber
  unsigned begin_ = 0, count_ = 0, next_ = 0;  // of the running warp
  bool is_reversed_ = false;
};

Block& block() {
  static Block the_block;
  return the_block;
}

void Block::run_threads() {
  Block& b = block();
  for (;;) {
    Fiber* const fiber = b.threads_[threadIdx.x].fiber;
    for (;;) {
      (*b.body_)();
      b.threads_[threadIdx.x].state = State::done;
      if (b.next_ + 1 == b.count_ || b.threads_[b.thread_at(b.next_ + 1)].fiber) break;
      threadIdx.x = b.thread_at(++b.next_);
      b.threads_[threadIdx.x].fiber = fiber;
    }
    b.idle_.push_back(fiber);
    switch_stacks(fiber->place, b.scheduler_);
  }
}

}  // namespace

void run_blocks(int64_t blocks, int threads, const std::function<void()>& thread) {
  blockDim.x = static_cast<unsigned>(threads);
  for (int64_t i = 0; i < blocks; i++) {
    blockIdx.x = static_cast<unsigned>(i);
    block().run(blockDim.x, thread);
  }
}

void wait_for_block() { block().wait(State::at_block); }

const Lanes& exchange(Collective kind, const Numbers& numbers) {
  const unsigned lane = threadIdx.x % kLanes;
  Warp& warp = block().warp();
  Lanes& lanes = warp.lanes[warp.exchanges[lane]++ % 2];
  lanes[lane] = numbers;
  block().wait(State::at_warp, kind);
  return lanes;
}

}  // namespace qkv::cuda::emulator
