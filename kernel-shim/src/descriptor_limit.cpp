#include "lrpc/shim/descriptor_limit.h"

#include <sys/resource.h>

namespace lrpc::shim {

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace lrpc::shim
