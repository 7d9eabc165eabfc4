// io_uring rings that can do little: a seccomp filter does not see what a ring is asked to do, so the ring itself must
// refuse it. By bare system calls: Debian 12's liburing declares functions for these but does not export them.
#pragma once

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <span>

namespace lrpc::shim {

/// Held while a ring is made and while it is given up. The next ring, of whatever thread, may get the addresses of one
/// that is gone; the kernel orders the two, but neither the language nor a race detector knows, since liburing maps and
/// unmaps by bare system calls.
[[nodiscard]] inline std::mutex& ring_addresses() noexcept {
  static std::mutex mutex;
  return mutex;
}

/// What a ring may do once it is enabled; nothing can be added to it later.
struct RingRestrictions {
  std::span<const std::uint8_t> operations{};  ///< IORING_OP_*
  std::span<const std::uint8_t> registers{};   ///< IORING_REGISTER_*, by io_uring_register(2)
  std::uint8_t flags = 0;                      ///< IOSQE_*, of its requests.
};

/// Restricts a ring that was made with IORING_SETUP_R_DISABLED and is not enabled yet. 0, or an errno: E2BIG if there
/// are more than 16 rows.
[[nodiscard]] inline int restrict_ring(int ring, const RingRestrictions& allowed) noexcept {
  std::array<io_uring_restriction, 16> rows{};
  std::size_t count = 0;
  if (allowed.operations.size() + allowed.registers.size() + 1 > rows.size()) return E2BIG;
  for (const std::uint8_t operation : allowed.operations) {
    rows[count].opcode = IORING_RESTRICTION_SQE_OP;
    rows[count++].sqe_op = operation;
  }
  for (const std::uint8_t one : allowed.registers) {
    rows[count].opcode = IORING_RESTRICTION_REGISTER_OP;
    rows[count++].register_op = one;
  }
  rows[count].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
  rows[count++].sqe_flags = allowed.flags;
  return ::syscall(SYS_io_uring_register, ring, IORING_REGISTER_RESTRICTIONS, rows.data(), count) == 0 ? 0 : errno;
}

/// Enables it. With IORING_SETUP_SINGLE_ISSUER the calling thread is from here on the only one that may use it. 0, or
/// an errno.
[[nodiscard]] inline int enable_ring(int ring) noexcept {
  return ::syscall(SYS_io_uring_register, ring, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) == 0 ? 0 : errno;
}

}  // namespace lrpc::shim
