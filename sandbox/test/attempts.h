// Attempts by a sandboxed process to show what it can no longer do. Shared by the tests of all programs that sandbox
// themselves.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lrpc::sandbox::test {

/// One attempt. `act` returns 0 if it succeeded (which does no harm), else the errno.
struct Attempt {
  std::string name;
  std::function<int()> act;
};

/// Attempts that every sandbox of this project forbids: programs, processes, files, other processes, the kernel's
/// configuration, network sockets, new rings, executable memory. `other`: a process of the same user.
std::vector<Attempt> forbidden_to_all(int other);

/// Runs `body` in a child process and returns its result. If the child ends before, returns "exit N" or "signal N", so
/// that a program that was executed is not mistaken for a body that found nothing.
std::string in_a_child(const std::function<std::string()>& body);

/// A process that only waits to be killed, so that an attempt does not kill the parent of the process that makes it.
class Victim {
 public:
  Victim();
  ~Victim();
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  [[nodiscard]] int pid() const noexcept { return pid_; }

 private:
  int pid_ = -1;
};

/// The names of the attempts that succeeded, or failed for a reason other than refusal (EPERM, EACCES, ENOSYS); empty
/// if all were refused.
std::string not_refused(const std::vector<Attempt>& attempts);

/// An open(2) of `path`.
Attempt opening(const std::string& path, int flags);
/// A socket(2).
Attempt socket_of(const std::string& name, int domain, int type, int protocol = 0);

/// A socketpair(2) of Unix sockets.
Attempt pair_of(const std::string& name, int type);

/// Drives a ring that other code of this process has made: submits one operation after another, without a library.
class RingIntruder {
 public:
  /// The descriptors of this process's rings.
  static std::vector<int> rings();
  /// `entries`, `completions` and `flags`: as when the ring was made. Call from the thread that enabled the ring.
  RingIntruder(int ring, unsigned entries, unsigned completions, unsigned flags);
  ~RingIntruder();
  RingIntruder(const RingIntruder&) = delete;
  RingIntruder& operator=(const RingIntruder&) = delete;
  /// False: the ring does not match these parameters.
  [[nodiscard]] bool mapped() const noexcept { return submissions_ != nullptr; }
  /// Of all operations of io_uring (up to `last`), the names of those that the ring does not refuse, except `expected`.
  std::string not_refused(const std::vector<int>& expected, int last);

 private:
  int submit(int operation);

  int ring_ = -1;
  unsigned entries_ = 0;
  std::size_t queue_size_ = 0;
  char* queue_ = nullptr;
  void* submissions_ = nullptr;
  std::vector<unsigned> offsets_;
};

}  // namespace lrpc::sandbox::test
