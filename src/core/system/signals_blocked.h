// Blocks signals of this thread, and of threads that it makes meanwhile, for the lifetime of an object: all but those
// that a thread raises by its own instructions (SIGSEGV and similar).
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace qkv {

class SignalsBlocked {
 public:
  SignalsBlocked() { pthread_sigmask(SIG_BLOCK, &asynchronous(), &before_); }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  static const sigset_t& asynchronous() {
    static const sigset_t set = [] {
      sigset_t all;
      sigfillset(&all);
      for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, own);
      return all;
    }();
    return set;
  }

  sigset_t before_;
};

}  // namespace qkv
