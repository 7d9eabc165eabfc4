// io_uring rings with few permitted operations: a seccomp filter does not see a ring's requests, so the ring itself
// must refuse them. This file makes the system calls itself: Debian 12's liburing declares functions for them, but does
// not export them.
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

/// Hold it while you make or close a ring. The next ring, of any thread, may get the addresses of a ring that was
/// closed. The kernel orders the two, but a race detector does not know that: liburing maps and unmaps by bare system
/// calls.
[[nodiscard]] inline std::mutex& ring_addresses() noexcept {
  static std::mutex mutex;
  return mutex;
}

/// What a ring may do once it is enabled. Nothing can be added later.
struct RingRestrictions {
  std::span<const std::uint8_t> operations{};  ///< IORING_OP_*
  std::span<const std::uint8_t> registers{};   ///< IORING_REGISTER_*, by io_uring_register(2)
  std::uint8_t flags = 0;                      ///< IOSQE_*, which its requests may have.
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

/// Enables a ring. With IORING_SETUP_SINGLE_ISSUER only the calling thread may use it from now on. 0, or an errno.
[[nodiscard]] inline int enable_ring(int ring) noexcept {
  return ::syscall(SYS_io_uring_register, ring, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) == 0 ? 0 : errno;
}

}  // namespace lrpc::shim
