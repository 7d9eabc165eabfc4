// The list is of what a program needs that computes: memory, time, its own signals, its three inherited streams.
// Nothing on it makes a descriptor, a process or a thread, or touches another process. docs/TRAP.md explains each
// group.
#include "filter.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "lrpc/shim/fd.h"
#include "lrpc/shim/trap.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)  // Linux 5.19
#endif

namespace lrpc::sealed {
namespace {

using Condition = scmp_arg_cmp;

constexpr Condition equal(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
constexpr Condition at_most(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_LE, value, 0}; }
/// None of these bits.
constexpr Condition without(unsigned argument, std::uint64_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, 0}; }
/// This value, whatever these bits are.
constexpr Condition equal_but_for(unsigned argument, std::uint64_t bits, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, ~bits, value};
}

/// A system call and what its arguments must be, all of it. Several rows of one name: any of them.
struct Rule {
  const char* name;
  std::vector<Condition> conditions = {};
};

constexpr std::uint64_t kStreams = 2;                             ///< Descriptors 0 to 2.
constexpr std::uint64_t kInherited = shim::kSealedDescriptionFd;  ///< And the binding's two, until they are read.
constexpr std::uint64_t kFutexFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
constexpr std::uint64_t kLastClock = 11;   ///< CLOCK_TAI; behind it are other processes' clocks.
constexpr std::uint64_t kLastAdvice = 25;  ///< MADV_COLLAPSE; far behind it MADV_HWPOISON.

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      // Memory. Nothing that can be written ever becomes executable, nor does anything new: no PROT_EXEC at all.
      {"brk"},
      {"munmap"},
      {"mremap"},
      {"mmap", {without(2, PROT_EXEC)}},
      {"mprotect", {without(2, PROT_EXEC)}},
      {"madvise", {at_most(2, kLastAdvice)}},
      {"membarrier", {equal(0, MEMBARRIER_CMD_PRIVATE_EXPEDITED)}},
      {"membarrier", {equal(0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)}},
      {"membarrier", {equal(0, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)}},  // lets others fence us, not us others
      // Waiting, time, randomness.
      {"futex", {equal_but_for(1, kFutexFlags, FUTEX_WAIT)}},
      {"futex", {equal_but_for(1, kFutexFlags, FUTEX_WAKE)}},
      {"futex", {equal_but_for(1, kFutexFlags, FUTEX_WAIT_BITSET)}},
      {"futex", {equal_but_for(1, kFutexFlags, FUTEX_WAKE_BITSET)}},
      {"clock_gettime", {at_most(0, kLastClock)}},
      {"clock_getres", {at_most(0, kLastClock)}},
      {"clock_nanosleep", {at_most(0, kLastClock)}},
      {"gettimeofday"},
      {"time"},
      {"nanosleep"},
      {"restart_syscall"},
      {"sched_yield"},
      {"getcpu"},
      {"sched_getaffinity", {equal(0, 0)}},
      {"getrandom"},
      // The program's own signals and its end.
      {"rt_sigaction"},
      {"rt_sigprocmask"},
      {"rt_sigreturn"},
      {"sigaltstack"},
      {"exit"},
      {"exit_group"},
      // Who it is.
      {"getpid"},
      {"gettid"},
      {"getppid"},
      {"getuid"},
      {"geteuid"},
      {"getgid"},
      {"getegid"},
      // What the C library does when a program starts.
      {"set_tid_address"},
      {"set_robust_list"},
      {"rseq"},
      {"prlimit64", {equal(0, 0), equal(2, 0)}},  // to read limits, not to set them
#ifdef __x86_64__
      {"arch_prctl", {equal(0, 0x1002)}},  // ARCH_SET_FS
      {"arch_prctl", {equal(0, 0x3001)}},  // ARCH_CET_STATUS, asked by some
#endif
      // The three streams, and the binding's two descriptors while they are there. fstat says nothing about anybody
      // else.
      {"read", {at_most(0, kStreams)}},
      {"readv", {at_most(0, kStreams)}},
      {"write", {at_most(0, kStreams)}},
      {"writev", {at_most(0, kStreams)}},
      {"lseek", {at_most(0, kInherited)}},
      {"fstat", {at_most(0, kInherited)}},
      {"close"},
      {"fcntl", {at_most(0, kInherited), equal(1, F_GETFD)}},
      {"fcntl", {at_most(0, kInherited), equal(1, F_GETFL)}},
      {"fcntl", {at_most(0, kInherited), equal(1, F_GET_SEALS)}},
      {"ioctl", {at_most(0, kStreams), equal(1, TCGETS)}},  // isatty
  };
  return kRules;
}

std::uint32_t action_of(Refuse refuse) {
  switch (refuse) {
    case Refuse::trace: return SCMP_ACT_TRACE(0);
    case Refuse::error: return SCMP_ACT_ERRNO(EPERM);
    case Refuse::kill: break;
  }
  return SCMP_ACT_KILL_PROCESS;
}

struct Context {
  explicit Context(std::uint32_t action) noexcept : filter(seccomp_init(action)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (filter != nullptr) seccomp_release(filter);
  }
  scmp_filter_ctx filter;
};

Status add(const Context& context, std::uint32_t action, long number, std::span<const Condition> conditions) {
  const int err = seccomp_rule_add_array(context.filter, action, static_cast<int>(number),
                                         static_cast<unsigned>(conditions.size()), conditions.data());
  if (err == 0) return {};
  return system_error("a rule of the seccomp filter for " + name_of_system_call(number), -err);
}

Status add_all(const Context& context, const std::vector<std::string>& allow, std::optional<int> send_on) {
  if (Status added = add(context, SCMP_ACT_NOTIFY, shim::kTrapNumber, {}); !added) return added;
  (void)seccomp_syscall_priority(context.filter, static_cast<int>(shim::kTrapNumber), 255);  // first, it is the call
  for (const Rule& rule : rules()) {
    const int number = seccomp_syscall_resolve_name(rule.name);
    if (number < 0) continue;  // not of this processor
    if (Status added = add(context, SCMP_ACT_ALLOW, number, rule.conditions); !added) return added;
  }
  for (const std::string& name : allow) {
    const int number = seccomp_syscall_resolve_name(name.c_str());
    if (number < 0) return Error{Errc::invalid_argument, "'" + name + "' is no system call of this processor"};
    if (Status added = add(context, SCMP_ACT_ALLOW, number, {}); !added) return added;
  }
  if (!send_on) return {};
  const Condition on_that = equal(0, static_cast<std::uint64_t>(*send_on));
  return add(context, SCMP_ACT_ALLOW, SYS_sendmsg, {&on_that, 1});
}

}  // namespace

Result<std::vector<sock_filter>> make_filter(Refuse refuse, const std::vector<std::string>& allow,
                                             std::optional<int> send_on) {
  const Context context(action_of(refuse));
  if (context.filter == nullptr) return Error{Errc::system_error, "libseccomp makes no filter"};
  // A system call of another architecture (32 bits, x32) has other numbers: there is no asking what it was.
  (void)seccomp_attr_set(context.filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (Status added = add_all(context, allow, send_on); !added) return added.error();

  const UniqueFd file(memfd_create("lrpc-filter", MFD_CLOEXEC));
  if (!file) return system_error("memfd_create", errno);
  if (const int err = seccomp_export_bpf(context.filter, file.get()); err != 0)
    return system_error("seccomp_export_bpf", -err);
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size <= 0 || static_cast<std::size_t>(size) % sizeof(sock_filter) != 0) {
    return Error{Errc::system_error, "seccomp_export_bpf wrote something else than a filter"};
  }
  std::vector<sock_filter> filter(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (pread(file.get(), filter.data(), static_cast<std::size_t>(size), 0) != size)
    return system_error("reading the filter", errno);
  return filter;
}

int install_filter(const sock_filter* filter, std::size_t size) noexcept {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
  sock_fprog program{static_cast<unsigned short>(size),
                     const_cast<sock_filter*>(filter)};  // NOLINT: the kernel only reads
  // Without WAIT_KILLABLE_RECV a signal would end a trap whose call is being executed.
  constexpr unsigned long kFlags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  const long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program);
  return listener >= 0 ? static_cast<int>(listener) : -errno;
}

Error why_not_installed(int err) {
  switch (err) {
    case EBUSY:
      return {
          Errc::not_supported,
          "a seccomp filter with a listener is in place already (a container's, or this process was started sealed): "
          "Linux allows one for a process, and it cannot be removed"};
    case EINVAL:
      return {Errc::not_supported,
              "this kernel cannot do the trap gate: it needs seccomp user notification with WAIT_KILLABLE_RECV, Linux "
              "5.19"};
    case ENOSYS:
    case EPERM:
      return {Errc::not_supported, "this kernel, or a filter that is in place, does not allow seccomp filters"};
    default: return system_error("seccomp", err);
  }
}

std::string name_of_system_call(long number) {
  if (number == shim::kTrapNumber) return "the trap";
  const std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(seccomp_arch_native(), static_cast<int>(number)), &std::free);
  return name != nullptr ? name.get() : "system call " + std::to_string(number);
}

}  // namespace lrpc::sealed
