// The allow-list has what a computing program needs: memory, time, its own signals, its three inherited streams.
// Nothing on it makes a descriptor, a process or a thread, or affects another process. docs/TRAP.md explains each
// group.
#include "filter.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lrpc/detail/shim/trap/trap.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)  // Linux 5.19
#endif

namespace lrpc::sealed {
namespace {

using sandbox::at_most;
using sandbox::equal;
using sandbox::equal_but_for;
using sandbox::Rule;
using sandbox::without;

constexpr std::uint64_t kStreams = 2;                             ///< Descriptors 0 to 2.
constexpr std::uint64_t kInherited = shim::kSealedDescriptionFd;  ///< And the binding's two, until they are read.

std::vector<Rule> rules(Refuse refuse) {
  std::vector<Rule> all = sandbox::computing_rules();
  // Anonymous memory. A mapping of an open file could read and write the file. So only a program that is started sealed
  // may map files, and only the binding's two descriptors, by their numbers: no other file can have these.
  std::erase_if(all, [](const Rule& rule) { return rule.name == "mmap"; });
  const sandbox::Condition never_executable = without(2, PROT_EXEC);
  all.push_back({"mmap", {never_executable, equal_but_for(3, ~std::uint64_t{MAP_ANONYMOUS}, MAP_ANONYMOUS)}});
  if (refuse == Refuse::trace) {
    for (const int fd : {shim::kSealedRegionFd, shim::kSealedDescriptionFd})
      all.push_back({"mmap", {never_executable, without(3, MAP_ANONYMOUS), equal(4, fd)}});
  }
  // The three streams, and the binding's two descriptors while they are open. fstat reveals nothing about other
  // processes.
  const std::vector<Rule> streams = {
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
  all.insert(all.end(), streams.begin(), streams.end());
  // Some C libraries (glibc 2.33 to 2.38) find out the kind of a stream with this call at its first use. It is refused,
  // but does not kill the program; Supervisor::is_worth_telling() makes the same exception.
  if (refuse == Refuse::kill)
    all.push_back({"newfstatat", {equal_but_for(3, ~std::uint64_t{AT_EMPTY_PATH}, AT_EMPTY_PATH)}, EPERM});
  return all;
}

/// The kernel would write a core file on the program's behalf, and overwrite a file that has its name. The limit is 1,
/// not 0: a core_pattern that is a pipe ignores 0 and starts no handler at 1 (core(5)). A hard limit of 0 cannot be
/// raised.
int forbid_core_files() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return -errno;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, 1);
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_CORE, &limit) == 0 ? 0 : -errno;
}

}  // namespace

Result<std::vector<sock_filter>> make_filter(Refuse refuse, const std::vector<std::string>& allow,
                                             std::optional<int> send_on) {
  sandbox::FilterOptions options{
      .otherwise = refuse, .rules = rules(refuse), .allow = allow, .notifies_first = shim::kTrapNumber};
  if (send_on) options.rules.push_back({"sendmsg", {equal(0, *send_on)}});
  return sandbox::make_filter(options);
}

int install_filter(const sock_filter* filter, std::size_t size) noexcept {
  if (const int err = forbid_core_files(); err != 0) return err;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
  sock_fprog program{static_cast<unsigned short>(size),
                     const_cast<sock_filter*>(filter)};  // NOLINT: the kernel only reads
  // Without WAIT_KILLABLE_RECV a signal would interrupt a trap while the server executes its call.
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
  return number == shim::kTrapNumber ? "the trap" : sandbox::name_of_system_call(number);
}

}  // namespace lrpc::sealed
