// Sealed client domains: programs whose only way out is the call.
//
// SealedDomain starts a program under a seccomp filter that allows what a computing plug-in needs and turns one
// system call number into the call to the one server that it is bound to. seal() does the same to the calling
// process. The filter, what it allows and what it protects from: docs/TRAP.md.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lrpc/client/import/binding.h"
#include "lrpc/shim/call/pdl.h"
#include "lrpc/shim/result.h"
#include "lrpc/shim/system/fd.h"

namespace lrpc {

/// A system call that a sealed program tried and was not allowed to make.
struct Refusal {
  pid_t pid = 0;
  long number = 0;
  std::string name;  ///< "openat"; "system call 12345" if nothing is known by that number.
};

struct SealedOptions {
  /// What the program is bound to, and imports by this name. With `socket` it is a name between the two alone.
  std::string name{};
  /// Nameserver socket; empty: as in ImportOptions.
  std::string nameserver{};
  /// How long to wait for the name to appear; kDoNotWait: it must be there; kNoLimit: for ever.
  std::chrono::milliseconds timeout = kDoNotWait;
  /// A private binding instead: the end of a socketpair (lrpc::make_socket_pair()) whose other end a server serves.
  UniqueFd socket{};
  /// The interface, Files::kPdl for example. Needed with `socket`; otherwise the nameserver is asked what the name has.
  const Pdl* pdl = nullptr;
  /// System calls, by name, that the program may make beyond the filter's own, with any arguments. Each is a hole: one
  /// that makes descriptors or processes undoes the sealing.
  std::vector<std::string> allow{};
  /// Its environment beyond PATH, HOME, LANG, LC_*, TERM and TZ: "NAME" passes this process's variable on, if it is
  /// set, "NAME=VALUE" sets one, also one of those. Nothing else of this process's environment reaches the program.
  std::vector<std::string> environment{};
  /// Kill the program at the first refused system call, instead of letting it fail with EPERM.
  bool kill_on_refusal = false;
  /// Told of each refusal, in a thread of this library: must not block for long. Empty: nobody is told. A program can
  /// make up numbers, so whoever keeps or prints names needs a bound.
  std::function<void(const Refusal&)> on_refused{};
};

/// A program that runs sealed. Move-only. Its destructor kills the program if it has not ended; so does the kernel if
/// this process dies.
///
/// The program is a child of this process and traced by it (ptrace(2)), which is how refusals are seen: nothing of this
/// process may wait for all children (waitpid(-1)) meanwhile.
class SealedDomain {
 public:
  /// Starts `arguments[0]` (looked up in $PATH if it has no slash), which must be linked statically: a sealed program
  /// could not open its libraries. It inherits the environment that options.environment allows and descriptors 0, 1 and
  /// 2, nothing else. Returns when the program runs, bound and sealed; blocks up to options.timeout for the name.
  /// Errors: invalid_argument (no such program, not static), not_supported (the kernel, or a filter with a listener
  /// that is in place already: Linux allows one), and those of Binding::import. Throws
  /// std::bad_alloc; then nothing was started.
  static Result<SealedDomain> start(std::vector<std::string> arguments, SealedOptions options);

  SealedDomain(SealedDomain&&) noexcept;
  SealedDomain& operator=(SealedDomain&&) noexcept;
  ~SealedDomain();

  [[nodiscard]] pid_t pid() const noexcept;
  /// Sends it a signal; nothing if it has ended.
  void signal(int number) noexcept;
  /// Waits until it has ended. Its status as waitpid(2) gives it.
  int wait() noexcept;

  struct Impl;

 private:
  explicit SealedDomain(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

struct SealOptions {
  /// As SealedOptions::allow.
  std::vector<std::string> allow{};
  /// What a refused system call does: it fails with EPERM, or it kills the process (SIGSYS). Nobody reports it.
  bool kill_on_refusal = false;
};

/// Seals the calling process for good: from now on `binding` is its only way out. The binding must have been imported
/// with Gate::trap, and the process must have one thread (no import before had a watcher). Irrevocable, also if the
/// offer to the server then fails (peer_gone).
/// Errors: invalid_argument, not_supported, system_error, peer_gone.
Status seal(Binding& binding, const SealOptions& options = {});

}  // namespace lrpc
