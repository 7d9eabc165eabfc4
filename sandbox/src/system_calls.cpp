// The allow-list. docs/SANDBOX.md says which groups each daemon uses, and why.
#include "system_calls.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <sstream>

namespace lrpc::sandbox {
namespace {

constexpr std::uint64_t kFutexFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
constexpr std::uint64_t kLastClock = 11;   ///< CLOCK_TAI; higher numbers include other processes' clocks.
constexpr std::uint64_t kLastAdvice = 25;  ///< MADV_COLLAPSE; MADV_HWPOISON is far above it.
/// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE: glibc 2.42 makes the guards of its threads' stacks so.
constexpr std::uint64_t kGuardInstall = 102;
constexpr std::uint64_t kGuardRemove = 103;

/// Flags of clone(2) that pthread_create(3) sets, required (kThread) and optional (kOfThread): they make a thread, in
/// no new namespace, traced by nobody.
constexpr std::uint64_t kThread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
constexpr std::uint64_t kOfThread = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                    CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_DETACHED;

/// Flags with which open(2) does more than read. O_TMPFILE contains O_DIRECTORY, which is harmless.
constexpr std::uint64_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

constexpr std::uint64_t kSocketFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

using Rules = std::vector<Rule>;

/// Adds a rule for each of `names`, which are separated by blanks, with the same conditions.
void allow(Rules& rules, const std::string& names, const std::vector<Condition>& conditions = {}) {
  std::istringstream words(names);
  for (std::string name; words >> name;) rules.push_back({name, conditions});
}

Rules descriptors() {
  Rules rules;
  allow(rules,
        "read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 close close_range dup dup2 dup3 "
        "lseek fstat fstatfs newfstatat statx stat lstat poll ppoll select pselect6 epoll_create epoll_create1 "
        "epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 pipe pipe2 timerfd_create timerfd_settime "
        "timerfd_gettime signalfd4 flock fsync fdatasync sendfile getcwd");
  // Not allowed: F_SETOWN and F_SETSIG, which have signals sent to other processes, and leases.
  for (const int command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GET_SEALS, F_SETPIPE_SZ,
                            F_GETPIPE_SZ, F_SETLK, F_SETLKW, F_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_OFD_GETLK})
    rules.push_back({"fcntl", {equal(1, command)}});
  for (const int request : {FIONBIO, FIONREAD, FIOCLEX, SIOCOUTQ, TCGETS, TIOCGWINSZ})
    rules.push_back({"ioctl", {equal(1, request)}});
  return rules;
}

Rule unix_sockets(const char* call, int type) {
  return {call, {equal(0, AF_UNIX), equal_but_for(1, kSocketFlags, type)}};
}

/// IPv4 and IPv6 sockets of `type`, with `protocol` or the default (0) only: Landlock has rules for TCP, not for MPTCP
/// or SCTP.
Rules internet_sockets(int type, int protocol) {
  Rules rules;
  for (const int domain : {AF_INET, AF_INET6}) {
    for (const int named : {0, protocol})
      rules.push_back({"socket", {equal(0, domain), equal_but_for(1, kSocketFlags, type), equal(2, named)}});
  }
  return rules;
}

Rules messages() {
  Rules rules{unix_sockets("socketpair", SOCK_STREAM),
              unix_sockets("socketpair", SOCK_SEQPACKET),
              // With MSG_FASTOPEN a send connects, which Landlock does not check.
              {"sendto", {without(3, MSG_FASTOPEN)}},
              {"sendmsg", {without(2, MSG_FASTOPEN)}},
              {"sendmmsg", {without(3, MSG_FASTOPEN)}}};
  allow(rules, "recvmsg recvmmsg recvfrom accept accept4 getsockopt setsockopt getsockname getpeername shutdown");
  return rules;
}

Rules threads() {
  Rules rules{
      // clone3 passes its flags by pointer, which a filter cannot read. After ENOSYS the C library uses clone.
      {"clone3", {}, ENOSYS},
      {"clone", {equal_but_for(0, kOfThread, kThread)}},
      {"pidfd_getfd", {}, ENOSYS},  // tried by shim::take_in(), which works without it
      {"membarrier", {equal(0, MEMBARRIER_CMD_GLOBAL_EXPEDITED)}},
  };
  allow(rules,
        "sched_setaffinity sched_setscheduler sched_getscheduler sched_setparam sched_getparam sched_getattr "
        "sched_setattr",
        {equal(0, 0)});  // the calling thread
  // Other threads' ids are allowed here: libserver reads its clerk's affinity, and pthread_getaffinity_np passes an id.
  allow(rules,
        "sched_getaffinity sched_get_priority_max sched_get_priority_min sched_rr_get_interval getrusage futex_waitv");
  allow(rules, "getpriority setpriority", {equal(0, 0), equal(1, 0)});  // PRIO_PROCESS, the calling thread
  for (const int option : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP,
                           PR_SET_TIMERSLACK, PR_GET_TIMERSLACK})
    rules.push_back({"prctl", {equal(0, option)}});
  return rules;
}

Rules read_files() {
  Rules rules{
      {"openat2", {}, ENOSYS},  // its flags are behind a pointer; callers then use openat
      {"openat", {without(2, kWrites)}},
      {"open", {without(1, kWrites)}},
  };
  allow(rules, "access faccessat faccessat2 readlink readlinkat getdents64 statfs chdir fchdir fadvise64 readahead");
  return rules;
}

Rules write_files() {
  Rules rules = read_files();
  // O_TRUNC is allowed only together with O_WRONLY or O_RDWR: before ABI 3 Landlock does not check O_TRUNC itself.
  for (const int mode : {O_WRONLY, O_RDWR}) {
    rules.push_back({"openat", {equal_but_for(2, ~std::uint64_t{O_ACCMODE}, mode)}});
    rules.push_back({"open", {equal_but_for(1, ~std::uint64_t{O_ACCMODE}, mode)}});
  }
  rules.push_back({"openat", {without(2, O_TRUNC)}});
  rules.push_back({"open", {without(1, O_TRUNC)}});
  // No changes of modes, owners or times, and no truncate(2): Landlock does not limit them to certain files.
  allow(rules,
        "creat mkdir mkdirat rename renameat renameat2 unlink unlinkat rmdir link linkat symlink symlinkat ftruncate "
        "fallocate copy_file_range umask");
  return rules;
}

Rules trap_listeners() {
  // readlink of /proc/self/fd/N tells a seccomp listener from other descriptors.
  Rules rules{{"seccomp", {equal(0, SECCOMP_GET_NOTIF_SIZES)}}, {"readlink"}, {"readlinkat"}};
  constexpr unsigned long kSetFlags = _IOW('!', 4, std::uint64_t);  // SECCOMP_IOCTL_NOTIF_SET_FLAGS, Linux 6.6
  for (const unsigned long request :
       {SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_IOCTL_NOTIF_ID_VALID, kSetFlags})
    rules.push_back({"ioctl", {equal(1, request)}});
  return rules;
}

Rules rings() {
  return {{"io_uring_enter"},
          // Nothing else may be registered; a ring's own restrictions may forbid more.
          {"io_uring_register", {equal(1, IORING_REGISTER_ENABLE_RINGS)}},
          {"io_uring_register", {equal(1, IORING_REGISTER_FILES_UPDATE)}}};
}

Rules streams() {
  Rules rules = internet_sockets(SOCK_STREAM, IPPROTO_TCP);
  allow(rules, "connect bind listen");
  return rules;
}

Rules datagrams() {
  Rules rules = internet_sockets(SOCK_DGRAM, IPPROTO_UDP);
  allow(rules, "connect bind");
  return rules;
}

Rules rules_of(Group group) {
  switch (group) {
    case Group::descriptors: return descriptors();
    case Group::messages: return messages();
    case Group::connect:
      return {unix_sockets("socket", SOCK_STREAM), unix_sockets("socket", SOCK_SEQPACKET), {"connect"}};
    case Group::shared_memory:
      return {{"memfd_create"}, {"ftruncate"}, {"fallocate"}, {"fcntl", {equal(1, F_ADD_SEALS)}}};
    case Group::peers: return {{"pidfd_open"}};
    case Group::threads: return threads();
    case Group::trap_listeners: return trap_listeners();
    case Group::read_files: return read_files();
    case Group::write_files: return write_files();
    case Group::remove_files: return {{"unlink"}, {"unlinkat", {equal(2, 0)}}};
    case Group::rings: return rings();
    case Group::datagrams: return datagrams();
    case Group::streams: return streams();
    case Group::unix_datagrams:
      return {unix_sockets("socket", SOCK_DGRAM), unix_sockets("socketpair", SOCK_DGRAM), {"connect"}};
  }
  return {};
}

}  // namespace

const std::vector<Rule>& computing_rules() {
  static const Rules kRules = [] {
    Rules rules;
    // Memory. No PROT_EXEC at all: neither existing nor new memory can become executable.
    allow(rules, "brk munmap mremap");
    allow(rules, "mmap mprotect", {without(2, PROT_EXEC)});
    allow(rules, "madvise", {at_most(2, kLastAdvice)});
    for (const std::uint64_t guard : {kGuardInstall, kGuardRemove}) allow(rules, "madvise", {equal(2, guard)});
    allow(rules, "membarrier", {equal(0, MEMBARRIER_CMD_PRIVATE_EXPEDITED)});
    allow(rules, "membarrier", {equal(0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)});
    // Lets other processes' membarrier(2) reach this one, not the reverse.
    allow(rules, "membarrier", {equal(0, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)});
    // Waiting, time, randomness.
    for (const int operation : {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET})
      allow(rules, "futex", {equal_but_for(1, kFutexFlags, operation)});
    allow(rules, "clock_gettime clock_getres clock_nanosleep", {at_most(0, kLastClock)});
    allow(rules, "gettimeofday time nanosleep restart_syscall sched_yield getcpu");
    allow(rules, "sched_getaffinity", {equal(0, 0)});
    allow(rules, "getrandom");
    // The program's own signals and its end.
    allow(rules, "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack exit exit_group");
    // Its own ids.
    allow(rules, "getpid gettid getppid getuid geteuid getgid getegid");
    // What the C library does when a program or a thread starts.
    allow(rules, "set_tid_address set_robust_list rseq");
    allow(rules, "prlimit64", {equal(0, 0), equal(2, 0)});  // to read limits, not to set them
#ifdef __x86_64__
    allow(rules, "arch_prctl", {equal(0, 0x1002)});  // ARCH_SET_FS
    allow(rules, "arch_prctl", {equal(0, 0x3001)});  // ARCH_CET_STATUS, used by some C libraries
#endif
    return rules;
  }();
  return kRules;
}

std::vector<Rule> rules_of(const std::vector<Group>& groups) {
  std::vector<Rule> rules = computing_rules();
  // Unlike a sealed domain, a sandboxed process may wait for signals and read its limits and other processes' clocks.
  // futex is allowed with any arguments: the kernel then caches that it is allowed, and calls through a gate run no
  // filter.
  allow(rules,
        "rt_sigtimedwait rt_sigpending rt_sigsuspend pause getgroups getresuid getresgid getpgrp getrlimit "
        "clock_gettime clock_getres uname sysinfo futex");
  rules.push_back({"tgkill", {equal(0, ::getpid())}});  // abort(3), raise(3)
  for (const Group group : groups) std::ranges::move(rules_of(group), std::back_inserter(rules));
  return rules;
}

std::vector<Group> server_domain() {
  return {Group::descriptors, Group::messages, Group::connect,        Group::shared_memory,
          Group::peers,       Group::threads,  Group::trap_listeners, Group::read_files};
}

}  // namespace lrpc::sandbox
