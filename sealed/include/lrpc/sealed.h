// Sealed client domains: programs that can reach others only by LRPC calls.
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

#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {

/// A system call that a sealed program tried and was not allowed to make.
struct Refusal {
  pid_t pid = 0;
  long number = 0;
  std::string name;  ///< "openat", or "system call 12345" if the number has no name.
};

struct SealedOptions {
  /// The server that the program is bound to; the program imports it by this name. With `socket`, any name that the two
  /// agree on.
  std::string name{};
  /// Nameserver socket; empty: as in ImportOptions.
  std::string nameserver{};
  /// How long to wait for the name to appear, also while the nameserver is restarted; kDoNotWait: it must be there;
  /// kNoLimit: for ever.
  std::chrono::milliseconds timeout = kDoNotWait;
  /// A private binding instead: the end of a socketpair (lrpc::make_socket_pair()) whose other end a server serves.
  UniqueFd socket{};
  /// The interface, for example &Files::kPdl. Needed with `socket`; otherwise the nameserver tells the interface.
  const Pdl* pdl = nullptr;
  /// Names of further system calls that the program may make, with any arguments. Each one weakens the seal: a call
  /// that makes descriptors or processes undoes it.
  std::vector<std::string> allow{};
  /// The program's environment, besides PATH, HOME, LANG, LC_*, TERM and TZ: "NAME" passes on this process's variable,
  /// if it is set; "NAME=VALUE" sets a variable, also one of those. The program gets no other variables.
  std::vector<std::string> environment{};
  /// Kill the program at the first refused system call, instead of letting it fail with EPERM.
  bool kill_on_refusal = false;
  /// Called for each refusal, on a thread of this library; must not block for long. Empty: not called. The program can
  /// make up any number of different system calls, so limit what you keep or print.
  std::function<void(const Refusal&)> on_refused{};
};

/// A program that runs sealed. Move-only. Its destructor kills the program if it has not ended, except in a fork child;
/// so does the kernel if this process dies.
///
/// The program is a child of this process, which traces it (ptrace(2)) to see refusals. So no other code of this
/// process may wait for all children (waitpid(-1)) meanwhile.
class SealedDomain {
 public:
  /// Starts `arguments[0]` (looked up in $PATH if it has no slash). The program must be linked statically, because it
  /// could not open shared libraries. It inherits only descriptors 0, 1 and 2 and the environment that
  /// options.environment allows. Returns when the program runs, bound and sealed. Blocks up to options.timeout for the
  /// name; beyond that, some seconds for each nameserver socket that does not accept, and 10 s for an answer. Errors:
  /// invalid_argument (no such program, not static), not_supported (the kernel, or a filter with a listener is in place
  /// already: Linux allows one), and those of Binding::import. Throws std::bad_alloc; then nothing was started.
  /// libseccomp, which makes the filter, may itself break without memory.
  static Result<SealedDomain> start(std::vector<std::string> arguments, SealedOptions options);

  SealedDomain(SealedDomain&&) noexcept;
  SealedDomain& operator=(SealedDomain&&) noexcept;
  ~SealedDomain();

  [[nodiscard]] pid_t pid() const noexcept;
  /// Sends the program a signal; does nothing if it has ended.
  void signal(int number) noexcept;
  /// Waits until the program has ended. Returns its status as waitpid(2) gives it; in a fork child -1, at once.
  int wait() noexcept;

  struct Impl;

 private:
  explicit SealedDomain(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

struct SealOptions {
  /// As SealedOptions::allow.
  std::vector<std::string> allow{};
  /// Whether a refused system call kills the process (SIGSYS) instead of failing with EPERM. Exception: newfstatat with
  /// AT_EMPTY_PATH, with which some C libraries find out the kind of a stream, always fails. Refusals are not reported.
  bool kill_on_refusal = false;
};

/// Seals the calling process permanently: from now on it can reach others only through `binding`. The binding must have
/// been imported by a name with Gate::trap (a private import starts a thread), and the process must have one thread (so
/// no earlier import may have started a watcher). If the listener cannot be offered to the server (peer_gone; timed_out
/// if the bell is full), the process is sealed all the same.
/// Errors: invalid_argument, not_supported, system_error, peer_gone, timed_out.
Status seal(Binding& binding, const SealOptions& options = {});

}  // namespace lrpc
