// Calls are not cancellation points (pthreads(7)).
#pragma once

#include <pthread.h>

namespace lrpc::shim {

/// While this object lives, the calling thread cannot be cancelled. The library waits in noexcept functions, through
/// which a cancelled thread could not unwind, and while it holds an A-stack or a lock. The thread ends at the program's
/// next cancellation point. Only for deferred cancellation, which is the default.
class NoCancellation {
 public:
  NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace lrpc::shim
