#include "core/system/team.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <memory>
#include <new>
#include <system_error>

#include "core/system/signals_blocked.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// A thread that waits looks for what it waits for, and sleeps after this time. To wake it takes as long as a short
// loop. While it looks, any other thread may have its processor.
constexpr std::chrono::microseconds kLook{1000};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Returns false if is_there() has not become true within kLook.
template <class F>
bool look_for(F&& is_there) {
  if (is_there()) return true;
  const auto end = std::chrono::steady_clock::now() + kLook;
  do {
    for (int i = 0; i < 32; i++) {
      pause();
      if (is_there()) return true;
    }
    sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

std::atomic<int> forks = 0;  // from the first process that used a team down to this one

int forks_seen() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { forks++; });
  return forks;
}

// The team of a thread. After a fork, its helpers exist in the parent only: it is left to itself, and replaced.
class OwnTeam {
 public:
  ~OwnTeam() { leave_to_parent(); }

  Team& get() {
    leave_to_parent();
    if (!team_) team_ = std::make_unique<Team>();
    return *team_;
  }

 private:
  void leave_to_parent() {
    if (forks_ != forks) (void)team_.release();
    forks_ = forks;
  }

  int forks_ = forks_seen();
  std::unique_ptr<Team> team_;
};

}  // namespace

Team& Team::of_this_thread() {
  thread_local OwnTeam own;
  return own.get();
}

Team::~Team() {
  ends_ = true;
  open({}, 0);
  for (std::thread& helper : helpers_) helper.join();
}

void Team::add_helpers(int helpers) {
  if (std::ssize(helpers_) >= helpers) return;
  const SignalsBlocked blocked;  // the program's own threads handle them
  try {
    while (std::ssize(helpers_) < helpers) helpers_.emplace_back([this, state = state_.load()] { help(state); });
  } catch (const std::system_error&) {  // no more threads
  } catch (const std::bad_alloc&) {
  }
}

void Team::run(FunctionRef<void(int)> work, int helpers) {
  add_helpers(helpers);
  open(work, helpers);
  work(0);
  close();
}

void Team::open(FunctionRef<void(int)> work, int helpers) {
  work_ = work;
  places_ = helpers;
  left_ = 0;
  state_ = (round(state_) + 1) * kRound;
  rounds_++;
  if (helpers == 0 || helpers >= std::ssize(helpers_)) return rounds_.notify_all();
  for (int i = 0; i < helpers; i++) rounds_.notify_one();
}

// Lets no more helpers join, and waits until those that have are done.
void Team::close() {
  const int all = static_cast<int>(joined(state_.fetch_or(kClosed)));
  if (look_for([&] { return left_ == all; })) return;
  for (int left = left_; left != all; left = left_) left_.wait(left);
}

void Team::help(uint64_t state) {
  while (true) {
    state = next_round(state);
    if (ends_) return;
    const int number = join(state);
    if (number == 0) continue;
    work_(number);
    left_++;
    left_.notify_one();
  }
}

// Returns the state of the first round that is not that of `state`.
uint64_t Team::next_round(uint64_t state) const {
  const auto is_next = [&] { return round(state_) != round(state); };
  if (!look_for(is_next))
    for (int rounds = rounds_; !is_next(); rounds = rounds_) rounds_.wait(rounds);
  return state_;
}

// Joins the round of `state`. Returns the thread's number in it, or 0 if it is too late.
int Team::join(uint64_t state) {
  const uint64_t joins = round(state);
  while (round(state) == joins && !(state & kClosed) && joined(state) < static_cast<uint64_t>(places_.load()))
    if (state_.compare_exchange_weak(state, state + 1)) return static_cast<int>(joined(state)) + 1;
  return 0;
}

}  // namespace qkv
