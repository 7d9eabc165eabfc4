#include "held_calls.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace testing_lrpc {

std::atomic<Watch*> Watch::current_{nullptr};

namespace {

std::chrono::nanoseconds left_until(const timespec* deadline) {
  if (deadline == nullptr) return std::chrono::nanoseconds::max();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(deadline->tv_sec - now.tv_sec) +
         std::chrono::nanoseconds(deadline->tv_nsec - now.tv_nsec);
}

bool has_descriptors(const msghdr& header) {
  const cmsghdr* const first = CMSG_FIRSTHDR(&header);
  return first != nullptr && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS;
}

}  // namespace

extern "C" {
long real_syscall(long number, ...) asm("__real_syscall");
int real_madvise(void* begin, std::size_t size, int advice) asm("__real_madvise");
long wrapped_syscall(long number, long a, long b, long c, long d, long e, long f) asm("__wrap_syscall");
int wrapped_madvise(void* begin, std::size_t size, int advice) asm("__wrap_madvise");
ssize_t real_sendmsg(int socket, const msghdr* header, int flags) asm("__real_sendmsg");
ssize_t wrapped_sendmsg(int socket, const msghdr* header, int flags) asm("__wrap_sendmsg");
int real_poll(pollfd* entries, nfds_t count, int timeout_ms) asm("__real_poll");
int wrapped_poll(pollfd* entries, nfds_t count, int timeout_ms) asm("__wrap_poll");

long wrapped_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (Watch* const watch = Watch::current(); number == SYS_membarrier && watch != nullptr && watch->refuses_fence()) {
    errno = ENOMEM;
    return -1;
  }
  Watch* const watch = number == SYS_futex || number == SYS_futex_waitv ? Watch::current() : nullptr;
  if (watch == nullptr) return real_syscall(number, a, b, c, d, e, f);
  if (number == SYS_futex_waitv && b != 0) {
    const auto& first = *reinterpret_cast<const futex_waitv*>(a);
    auto* const word = reinterpret_cast<void*>(first.uaddr);
    watch->waits(word, static_cast<std::uint32_t>(first.val), Watch::kAnyOf,
                 left_until(reinterpret_cast<const timespec*>(d)));
    const long result = real_syscall(number, a, b, c, d, e, f);
    const int error = errno;
    watch->waited(word, Watch::kAnyOf, result < 0 ? -1 : 0);
    errno = error;
    return result;
  }
  auto* const word = reinterpret_cast<void*>(a);
  const auto bits = static_cast<std::uint32_t>(f);
  const auto what = static_cast<int>(b) & FUTEX_CMD_MASK;
  if (what == FUTEX_WAIT_BITSET)
    watch->waits(word, static_cast<std::uint32_t>(c), bits, left_until(reinterpret_cast<const timespec*>(d)));
  const long result = real_syscall(number, a, b, c, d, e, f);
  const int error = errno;
  if (what == FUTEX_WAIT_BITSET) watch->waited(word, bits, result);
  if (what == FUTEX_WAKE_BITSET) watch->woke(word, bits);
  if (what == FUTEX_WAKE) watch->woke_here();
  errno = error;
  return result;
}

int wrapped_madvise(void* begin, std::size_t size, int advice) {
  if (Watch* const watch = Watch::current(); watch != nullptr && advice == MADV_REMOVE) watch->punches();
  return real_madvise(begin, size, advice);
}

ssize_t wrapped_sendmsg(int socket, const msghdr* header, int flags) {
  if (Watch* const watch = Watch::current();
      watch != nullptr && has_descriptors(*header) && watch->refuses_descriptors()) {
    errno = ETOOMANYREFS;
    return -1;
  }
  return real_sendmsg(socket, header, flags);
}

int wrapped_poll(pollfd* entries, nfds_t count, int timeout_ms) {
  if (Watch* const watch = Watch::current(); watch != nullptr && watch->skips_poll(timeout_ms)) return 0;
  return real_poll(entries, count, timeout_ms);
}
}

}  // namespace testing_lrpc
