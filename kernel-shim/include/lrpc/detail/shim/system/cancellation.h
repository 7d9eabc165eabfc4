// Calls are no cancellation points (pthreads(7)).
#pragma once

#include <pthread.h>

namespace lrpc::shim {

/// While it lives, the calling thread is not cancelled: what waits in here waits in noexcept functions, through which a
/// cancelled thread could not unwind, and with an A-stack or a lock in its hands. The thread ends at the next
/// cancellation point of its own. Only for deferred cancellation, which is the default.
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
