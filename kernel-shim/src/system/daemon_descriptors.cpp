#include "lrpc/detail/shim/system/daemon_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

namespace lrpc::shim {

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t descriptor_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

std::string few_descriptors(std::string_view daemon, std::uint64_t most, std::string_view of_what,
                            std::uint64_t descriptors) {
  return std::string("at most ").append(std::to_string(most)).append(" ").append(of_what).append(": ").append(daemon) +
         " may have no more than " + std::to_string(descriptors) +
         " open files (raise its hard limit, ulimit -Hn or LimitNOFILE=)";
}

int open_null() noexcept {
  const int null = ::open("/dev/null", O_RDWR);
  return null >= 0 ? null : ::open("/", O_PATH);
}

void open_standard_streams() noexcept {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    // open(2) returns the lowest free number: this one. Not close-on-exec: a child may have it, too.
    if (::fcntl(stream, F_GETFD) < 0) (void)open_null();
  }
}

void close_inherited(int keep) noexcept {
  constexpr unsigned kFirst = 3;
  const auto close = [](unsigned first, unsigned last) {
    if (first <= last) (void)::syscall(SYS_close_range, first, last, 0U);
  };
  if (keep < static_cast<int>(kFirst)) return close(kFirst, ~0U);
  close(kFirst, static_cast<unsigned>(keep) - 1);
  close(static_cast<unsigned>(keep) + 1, ~0U);
}

}  // namespace lrpc::shim
