#include "supervisor.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "filter.h"

#if defined(__x86_64__)
#include "arch/x86_64.h"
#elif defined(__aarch64__)
#include "arch/aarch64.h"
#else
#error "lrpc knows x86-64 and aarch64; add sealed/src/arch/<yours>.h with refuse_system_call()"
#endif

namespace lrpc::sealed {

Status Supervisor::seize() {
  // Only system calls that the filter refuses stop the program; the trap and those that it allows run at full speed.
  constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC;
  if (ptrace(PTRACE_SEIZE, pid_, nullptr, kOptions) == 0) return {};
  if (errno != EPERM) return system_error("ptrace of the sealed program", errno);
  return Error{Errc::not_supported,
               "not allowed to trace the sealed program, which is how refusals are told: a debugger has this "
               "process, or kernel.yama.ptrace_scope or a container's policy forbids ptrace(2)"};
}

bool Supervisor::wait_for_start() noexcept {
  while (phase_ != Phase::running && next_event()) continue;
  return phase_ == Phase::running;
}

int Supervisor::wait_for_end() noexcept {
  while (next_event()) continue;
  return status_;
}

/// Handles one stop of the program. False: the program has ended.
bool Supervisor::next_event() noexcept {
  int status = 0;
  if (waitpid(pid_, &status, __WALL) < 0) {
    if (errno == EINTR) return true;
    status_ = W_EXITCODE(0, SIGKILL);  // somebody else has reaped it: how it ended is not known
    return false;
  }
  if (!WIFSTOPPED(status)) {
    status_ = status;
    return false;
  }
  on_event(status >> 16, WSTOPSIG(status));
  return true;
}

void Supervisor::on_event(int event, int signal) noexcept {
  switch (event) {
    case PTRACE_EVENT_SECCOMP: return on_system_call();
    case PTRACE_EVENT_EXEC: phase_ = Phase::running; return go_on();
    case PTRACE_EVENT_STOP:
      if (signal == SIGTRAP) return go_on();
      // A group stop (SIGSTOP and its like): the program stays stopped until SIGCONT.
      (void)ptrace(PTRACE_LISTEN, pid_, nullptr, nullptr);
      return;
    default: return go_on(signal);  // a signal is about to be delivered: let it
  }
}

void Supervisor::go_on(int signal) const noexcept {
  (void)ptrace(PTRACE_CONT, pid_, nullptr, static_cast<long>(signal));
}

/// Whether this is the next of the two calls that run_child() makes under the filter, in their order and once each.
bool Supervisor::is_part_of_start(long number) noexcept {
  if (phase_ == Phase::arranging && number == SYS_sendmsg) {
    phase_ = Phase::offered;
    return true;
  }
  if (phase_ == Phase::offered && number == SYS_execveat) {
    phase_ = Phase::started;
    return true;
  }
  return false;
}

void Supervisor::on_system_call() noexcept {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_SECCOMP) {
    ::kill(pid_, SIGKILL);  // should not happen; a call that is not refused would be executed
    return go_on();
  }
  const auto number = static_cast<long>(info.seccomp.nr);
  const std::uint64_t* arguments = info.seccomp.args;
  // abort(3) sends the signal to its own process. The arguments are in registers, which nobody can change now.
  const auto self = static_cast<std::uint64_t>(pid_);
  const bool to_itself = number == SYS_tgkill && arguments[0] == self && arguments[1] == self;
  if (to_itself || is_part_of_start(number)) return go_on();

  bool worth_telling = true;
  try {
    worth_telling = is_worth_telling(number, arguments);
    if (worth_telling && on_refused_) on_refused_({.pid = pid_, .number = number, .name = name_of_system_call(number)});
  } catch (...) {  // no memory, or the callback threw: refuse and kill all the same
  }
  if (worth_telling && kill_on_refusal_) ::kill(pid_, SIGKILL);
  if (!refuse_system_call(pid_)) ::kill(pid_, SIGKILL);
  go_on();
}

/// False for two calls that the C library makes in every program and that may fail: for the kind of a stream
/// (newfstatat with an empty name) and for the path of the program (/proc/self/exe).
bool Supervisor::is_worth_telling(long number, const std::uint64_t* arguments) const {
  if (number == SYS_newfstatat) return (arguments[3] & AT_EMPTY_PATH) == 0 || !peek_string(arguments[1]).empty();
#ifdef SYS_readlink
  if (number == SYS_readlink) return peek_string(arguments[0]) != "/proc/self/exe";
#endif
  if (number == SYS_readlinkat) return peek_string(arguments[1]) != "/proc/self/exe";
  return true;
}

/// At least the first 16 characters. Not with process_vm_readv(2): a container may refuse that, although it lets a
/// process trace its children.
std::string Supervisor::peek_string(std::uint64_t address) const {
  constexpr std::uint64_t kWord = sizeof(long);
  const std::uint64_t before = address % kWord;
  std::string text;
  // Aligned words, because one that lies across the end of a page might be unreadable.
  for (std::uint64_t at = address - before; text.size() < 3 * kWord; at += kWord) {
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, pid_, at, nullptr);
    if (errno != 0) break;
    text.append(reinterpret_cast<const char*>(&word), kWord);
  }
  if (text.size() <= before) return "?";
  return text.c_str() + before;  // up to its end
}

}  // namespace lrpc::sealed
