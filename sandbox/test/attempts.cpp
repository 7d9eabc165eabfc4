#include "attempts.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace lrpc::sandbox::test {
namespace {

int outcome(long result) { return result == -1 ? errno : 0; }
int closed(long fd) {
  if (fd < 0) return errno;
  ::close(static_cast<int>(fd));
  return 0;
}

/// The child, if one was created, exits at once.
int forked(long pid) {
  if (pid == 0) ::_exit(0);
  if (pid < 0) return errno;
  ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return 0;
}

int executed(const char* path) {
  std::array<char*, 2> arguments{const_cast<char*>(path), nullptr};  // NOLINT: execve only reads
  ::execve(path, arguments.data(), nullptr);
  return errno;
}

int mapped(void* at) {
  if (at == MAP_FAILED) return errno;  // NOLINT: an int in a pointer's clothes
  ::munmap(at, 4096);
  return 0;
}

int made_executable() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int result = outcome(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
  ::munmap(page, 4096);
  return result;
}

int read_memory_of(pid_t pid) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{const_cast<char*>(reinterpret_cast<const char*>(&kill)), 1};  // NOLINT: the same program
  return outcome(::process_vm_readv(pid, &here, 1, &there, 1, 0));
}

int cloned3() {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  return forked(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

/// An argument that is left out is 0. So the kernel finds no structure there: a call that is not refused fails with
/// EFAULT or EINVAL at most.
long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}

}  // namespace

Attempt opening(const std::string& path, int flags) {
  return {"open " + path, [path, flags] { return closed(::open(path.c_str(), flags | O_CLOEXEC, 0600)); }};
}

Attempt socket_of(const std::string& name, int domain, int type, int protocol) {
  return {"socket " + name, [=] { return closed(::socket(domain, type | SOCK_CLOEXEC, protocol)); }};
}

/// A pair of Unix sockets. An end of a datagram pair could send to any path.
Attempt pair_of(const std::string& name, int type) {
  return {"socketpair " + name, [type] {
            int ends[2];
            if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return errno;
            ::close(ends[0]);
            return closed(ends[1]);
          }};
}

std::vector<Attempt> forbidden_to_all(int other) {
  std::vector<Attempt> all = {
      opening("/etc/shadow", O_RDONLY),
      opening("/etc/hostname", O_RDONLY),
      opening("/proc/1/environ", O_RDONLY),
      opening("/proc/self/mem", O_RDWR),
      opening("/", O_RDONLY | O_DIRECTORY),
      opening("/tmp/lrpc-sandbox-attempt", O_WRONLY | O_CREAT),
      opening("/tmp", O_WRONLY | O_TMPFILE),
      {"mkdir", [] { return outcome(::mkdir("/tmp/lrpc-sandbox-attempt.d", 0700)); }},
      {"rename", [] { return outcome(::rename("/tmp/lrpc-sandbox-no", "/tmp/lrpc-sandbox-no2")); }},
      {"symlink", [] { return outcome(::symlink("/", "/tmp/lrpc-sandbox-attempt.l")); }},
      {"chmod", [] { return outcome(::chmod("/tmp/lrpc-sandbox-no", 0700)); }},
      {"execve", [] { return executed("/bin/true"); }},
      {"execveat", [] { return outcome(raw(SYS_execveat, 0, reinterpret_cast<long>(""), 0, 0, AT_EMPTY_PATH)); }},
#ifdef SYS_fork
      {"fork", [] { return forked(::syscall(SYS_fork)); }},
#endif
      {"clone of a process", [] { return forked(raw(SYS_clone, SIGCHLD)); }},
      {"clone3", [] { return cloned3(); }},
      {"ptrace", [other] { return outcome(::ptrace(PTRACE_SEIZE, other, nullptr, nullptr)); }},
      {"ptrace of oneself", [] { return outcome(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
      {"process_vm_readv", [other] { return read_memory_of(other); }},
      {"kill", [other] { return outcome(::kill(other, 0)); }},
      {"kill of all", [] { return outcome(::kill(-1, 0)); }},
      {"tgkill", [other] { return outcome(raw(SYS_tgkill, other, other, 0)); }},
      {"pidfd_getfd", [] { return outcome(raw(SYS_pidfd_getfd, -1, 0, 0)); }},
      {"prlimit of another",
       [other] {
         rlimit limit{};
         return outcome(raw(SYS_prlimit64, other, RLIMIT_CORE, 0, reinterpret_cast<long>(&limit)));
       }},
      socket_of("TCP", AF_INET, SOCK_STREAM),
      socket_of("TCP over IPv6", AF_INET6, SOCK_STREAM),
      socket_of("raw IP", AF_INET, SOCK_RAW, 253),
      socket_of("Unix datagrams", AF_UNIX, SOCK_DGRAM),
      socket_of("Unix raw", AF_UNIX, SOCK_RAW),  // also makes datagram sockets
      pair_of("of datagrams", SOCK_DGRAM),
      pair_of("of datagrams that do not block", SOCK_DGRAM | SOCK_NONBLOCK),
      pair_of("raw", SOCK_RAW),
      socket_of("AF_PACKET", AF_PACKET, SOCK_DGRAM),
      socket_of("AF_NETLINK", AF_NETLINK, SOCK_RAW),
      socket_of("AF_ALG", AF_ALG, SOCK_SEQPACKET),
      {"io_uring_setup",
       [] {
         io_uring_params parameters{};
         return closed(raw(SYS_io_uring_setup, 4, reinterpret_cast<long>(&parameters)));
       }},
      {"bpf",
       [] {
         union bpf_attr attributes {};
         attributes.map_type = BPF_MAP_TYPE_ARRAY;
         attributes.key_size = attributes.value_size = 4;
         attributes.max_entries = 1;
         return closed(raw(SYS_bpf, BPF_MAP_CREATE, reinterpret_cast<long>(&attributes), sizeof attributes));
       }},
      {"mount", [] { return outcome(::mount("none", "/tmp", "tmpfs", MS_REMOUNT, nullptr)); }},
      {"umount", [] { return outcome(::umount2("/lrpc-sandbox-no", 0)); }},
      {"unshare", [] { return outcome(::unshare(CLONE_NEWUSER)); }},
      {"setns", [] { return outcome(raw(SYS_setns, 0, 0)); }},
      {"chroot", [] { return outcome(::chroot("/")); }},
      {"keyctl", [] { return outcome(raw(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1)); }},
      {"add_key", [] { return outcome(raw(SYS_add_key)); }},
      {"perf_event_open", [] { return closed(raw(SYS_perf_event_open, 0, 0, -1, -1)); }},
      {"userfaultfd", [] { return closed(raw(SYS_userfaultfd, O_CLOEXEC)); }},
      {"init_module", [] { return outcome(raw(SYS_init_module)); }},
      {"personality", [] { return outcome(raw(SYS_personality, 0xffffffff)); }},
      {"setuid", [] { return outcome(raw(SYS_setuid, static_cast<long>(::getuid()))); }},
      {"capset", [] { return outcome(raw(SYS_capset)); }},
      {"settimeofday", [] { return outcome(raw(SYS_settimeofday)); }},
      {"swapoff", [] { return outcome(raw(SYS_swapoff)); }},
      {"reboot", [] { return outcome(raw(SYS_reboot)); }},
      {"open_by_handle_at", [] { return outcome(raw(SYS_open_by_handle_at)); }},
      {"openat2", [] { return outcome(raw(SYS_openat2, AT_FDCWD, reinterpret_cast<long>("/"))); }},
      {"a filter of its own", [] { return outcome(raw(SYS_seccomp, 1, 0, 0)); }},
      {"PR_SET_DUMPABLE", [] { return outcome(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); }},
      {"executable memory",
       [] { return mapped(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
      {"memory made executable", [] { return made_executable(); }},
  };
  return all;
}

std::string not_refused(const std::vector<Attempt>& attempts) {
  std::string names;
  for (const Attempt& attempt : attempts) {
    const int err = attempt.act();
    if (err == EPERM || err == EACCES || err == ENOSYS) continue;
    names += (names.empty() ? "" : ", ") + attempt.name + " (" + (err == 0 ? "done" : std::strerror(err)) + ")";
  }
  return names;
}

std::string in_a_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe2";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    std::string text = body() + '\1';  // marks that the body has returned
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t written = ::write(ends[1], rest.data(), rest.size());
      if (written <= 0) ::_exit(1);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!text.empty() && text.back() == '\1' && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    text.pop_back();
    return text;
  }
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

Victim::Victim() : pid_(::fork()) {
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

Victim::~Victim() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

// ---- RingIntruder ----

std::vector<int> RingIntruder::rings() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry.path(), error) == "anon_inode:[io_uring]")
      found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

RingIntruder::RingIntruder(int ring, unsigned entries, unsigned completions, unsigned flags)
    : ring_(ring), entries_(entries) {
  // The kernel tells the layout of a ring's memory only to its creator. So create a ring with the same parameters.
  io_uring_params like{};
  like.flags = flags | IORING_SETUP_CQSIZE;
  like.cq_entries = completions;
  const long other = ::syscall(SYS_io_uring_setup, entries, &like);
  if (other < 0) return;
  ::close(static_cast<int>(other));
  offsets_ = {like.sq_off.tail, like.sq_off.array, like.sq_off.ring_mask, like.cq_off.head,
              like.cq_off.tail, like.cq_off.cqes,  like.cq_off.ring_mask};
  queue_size_ = std::max<std::size_t>(like.sq_off.array + entries * sizeof(unsigned),
                                      like.cq_off.cqes + completions * sizeof(io_uring_cqe));
  void* const queue = ::mmap(nullptr, queue_size_, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  void* const submissions =
      ::mmap(nullptr, entries * sizeof(io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  if (queue == MAP_FAILED || submissions == MAP_FAILED) return;  // NOLINT: as above
  queue_ = static_cast<char*>(queue);
  submissions_ = submissions;
}

RingIntruder::~RingIntruder() {
  if (queue_ != nullptr) ::munmap(queue_, queue_size_);
  if (submissions_ != nullptr) ::munmap(submissions_, entries_ * sizeof(io_uring_sqe));
}

int RingIntruder::submit(int operation) {
  const auto word = [this](std::size_t which) { return reinterpret_cast<unsigned*>(queue_ + offsets_[which]); };
  unsigned* const tail = word(0);
  const unsigned slot = *tail & *word(2);
  auto& entry = static_cast<io_uring_sqe*>(submissions_)[slot];
  entry = {};
  entry.opcode = static_cast<__u8>(operation);
  entry.fd = -1;  // an operation that is not refused fails on this descriptor, or does nothing
  entry.user_data = 0x1d;
  word(1)[slot] = slot;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  if (::syscall(SYS_io_uring_enter, ring_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0) return errno;
  unsigned* const head = word(3);
  if (__atomic_load_n(word(4), __ATOMIC_ACQUIRE) == *head) return EAGAIN;
  const auto& done = reinterpret_cast<io_uring_cqe*>(queue_ + offsets_[5])[*head & *word(6)];
  const int result = done.res;
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  return -result;
}

std::string RingIntruder::not_refused(const std::vector<int>& expected, int last) {
  std::string names;
  for (int operation = 0; operation <= last; ++operation) {
    if (std::ranges::find(expected, operation) != expected.end()) continue;
    // A restricted ring returns EACCES; EINVAL means that this kernel does not know the operation.
    const int err = submit(operation);
    if (err != EACCES && err != EINVAL)
      names += (names.empty() ? "" : ", ") + std::to_string(operation) + " (" + std::strerror(err) + ")";
  }
  return names;
}

}  // namespace lrpc::sandbox::test
