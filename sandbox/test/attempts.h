// What a process that has shut itself in tries, to show what it can no longer do. Shared by the tests of everything
// that shuts itself in.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lrpc::sandbox::test {

/// One thing to try. Returns 0 if it could be done (which then does no harm), else the errno.
struct Attempt {
  std::string name;
  std::function<int()> act;
};

/// What none of the sandboxes of this project leaves: programs, processes, files, other processes, the kernel's
/// configuration, network sockets, new rings, executable memory. `other`: a process of the same user.
std::vector<Attempt> forbidden_to_all(int other);

/// Runs `body` in a child process and returns what it returns. Anything that ends the child before comes back as
/// "exit N" or "signal N", so that a program that could be executed is not mistaken for a body that found nothing.
std::string in_a_child(const std::function<std::string()>& body);

/// A process that waits to be killed: the parent of one that tries things is too dear to be hit.
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

/// The names of the attempts that succeeded, or failed for another reason than that they are refused (EPERM, EACCES,
/// ENOSYS); empty if all were refused.
std::string not_refused(const std::vector<Attempt>& attempts);

/// An open(2) of `path`.
Attempt opening(const std::string& path, int flags);
/// A socket(2).
Attempt socket_of(const std::string& name, int domain, int type, int protocol = 0);

/// A socketpair(2) of Unix sockets.
Attempt pair_of(const std::string& name, int type);

/// A ring of this process that somebody else's code has made, and asks it for one operation after another, by hand.
class RingIntruder {
 public:
  /// The rings among this process's descriptors.
  static std::vector<int> rings();
  /// `entries`, `completions` and `flags`: as the ring was made. The thread that enabled it must be the one that calls.
  RingIntruder(int ring, unsigned entries, unsigned completions, unsigned flags);
  ~RingIntruder();
  RingIntruder(const RingIntruder&) = delete;
  RingIntruder& operator=(const RingIntruder&) = delete;
  /// False: the ring is not as it was said to be.
  [[nodiscard]] bool mapped() const noexcept { return submissions_ != nullptr; }
  /// Of every operation that io_uring has (up to `last`), the names of those that the ring does not refuse.
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
