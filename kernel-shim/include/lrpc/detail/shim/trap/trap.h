// The trap gate: a sealed client domain traps into the kernel, and the kernel tells the server who called.
//
// One system call number that no kernel knows is the trap. The seccomp filter of the sealed domain makes it a user
// notification: the caller stops, the server reads the call's registers and the caller's pid from the listener,
// serves the call on the A-stack, and answers; then the caller goes on. docs/TRAP.md has the whole story.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

/// The trap's number: "LR", far above all system calls.
inline constexpr long kTrapNumber = 0x4c52;

/// The registers of a trap (LRPC §3.2). The kernel copies them, so nobody can change them after a check.
struct TrapRegisters {
  std::array<std::uint64_t, 2> binding{};  ///< The Binding Object's nonce, by which both sides know it.
  std::uint64_t procedure = 0;
  std::uint64_t astack = 0;
  std::uint64_t generation = 0;
};

/// A nonce in the form of two registers.
[[nodiscard]] std::array<std::uint64_t, 2> in_registers(const Nonce& nonce) noexcept;

// ---- The client's half ----

/// Traps. Returns when the server has answered: 0, or a negative errno. -ENOSYS: there is no server (any more). -EINTR:
/// a signal came before the server had seen the trap. The call word has the outcome of the call.
long trap(const TrapRegisters& registers) noexcept;

/// The environment variable that tells a sealed program its binding: "region fd:description fd:size:size".
inline constexpr const char* kSealedVariable = "LRPC_SEALED";
inline constexpr int kSealedRegionFd = 3;
inline constexpr int kSealedDescriptionFd = 4;

/// The binding of a sealed program, which its launcher has made: the request, and what was granted.
struct SealedBinding {
  ImportRequest granted;
  Bound bound;
  UniqueFd region;
};
/// The description of a binding, for a program that is not yet started: a sealed memfd, and kSealedVariable's value.
struct SealedDescription {
  UniqueFd memory;
  std::string variable;
};
Result<SealedDescription> describe_sealed_binding(const ImportRequest& granted, const Bound& bound);
/// The reverse, in the program: takes and closes the descriptors that `variable` names. bad_message if they are not
/// such a description.
Result<SealedBinding> read_sealed_binding(const std::string& variable);

// ---- The server's half ----

/// One trap, as the kernel reports it.
struct Trap {
  std::uint64_t id = 0;  ///< The kernel's name for it, for the answer.
  pid_t pid = 0;         ///< The calling thread's, from the kernel.
  long number = 0;       ///< The system call's; a filter that is not ours may report any.
  TrapRegisters registers;
};

/// The listener of a sealed client domain, as the server holds it. Not thread-safe.
class TrapListener {
 public:
  /// Takes a descriptor that another domain has sent. Errors: bad_message (not a seccomp listener), not_supported.
  static Result<TrapListener> take(UniqueFd fd);
  /// Waits until there is a trap, or `wake` or `gone` is readable. True: there may be a trap. False: there will be
  /// none.
  [[nodiscard]] bool wait(int wake, int gone) noexcept;
  /// Receives the trap that wait() announced; false if it has vanished (its caller was interrupted). Does not block,
  /// unless another holder of the listener took the trap: then it blocks until the next trap or the end of the sealed
  /// domain.
  [[nodiscard]] bool receive(Trap& trap) noexcept;
  /// Lets the caller continue: its trap returns 0 or -`error`.
  void answer(const Trap& trap, int error) noexcept;
  /// Makes all waiting and later traps return -ENOSYS.
  void close() noexcept { fd_.reset(); }

 private:
  explicit TrapListener(UniqueFd fd) : fd_(std::move(fd)) {}
  /// Forked children do not hold it: one that outlives this process would keep the sealed domain's trapped caller
  /// waiting.
  FdNotForChildren fd_;
  /// Longer than the structure in this header: the kernel's may be longer.
  alignas(8) std::array<std::byte, 256> received_{};
};

}  // namespace lrpc::shim
