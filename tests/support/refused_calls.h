// Makes system calls fail in one thread, and in threads and processes that it starts later.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace testing_lrpc {

inline constexpr auto kNoSuchKernel = "no filters of seccomp can be set: no older kernel to be had here";

/// Threads and processes that this thread starts inherit the filter. Negative: no filter can be set here.
template <std::size_t N>
[[nodiscard]] int set_filter(std::array<sock_filter, N> code, unsigned long flags) {
  const sock_fprog program{static_cast<unsigned short>(N), code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}
template <std::size_t N>
[[nodiscard]] bool filter_this_thread(const std::array<sock_filter, N>& code) {
  return set_filter(code, 0) == 0;
}

/// The filter's action for each system call of this number.
constexpr std::array<sock_filter, 4> at_each_call(std::uint32_t number, std::uint32_t action) {
  return {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
}

/// From now on this system call fails so.
[[nodiscard]] inline bool refuse_calls(std::uint32_t number, std::uint32_t err) {
  return filter_this_thread(at_each_call(number, SECCOMP_RET_ERRNO | err));
}

/// Answers the next system call that a filter has stopped (SECCOMP_RET_USER_NOTIF), if there is one within 5 ms.
/// `decide(call)` returns the errno with which it fails; 0: it is executed.
template <class Decide>
void answer_call(int listener, const Decide& decide) {
  pollfd entry{listener, POLLIN, 0};
  seccomp_notif asked{};
  if (::poll(&entry, 1, 5) <= 0 || ::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  seccomp_notif_resp answer{};
  answer.id = asked.id;
  answer.error = -decide(asked);
  if (answer.error == 0) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/// Makes the kernel look like one that does not have this option of sockets. `call`: setsockopt or getsockopt.
[[nodiscard]] inline bool forget_socket_option(std::uint32_t call, std::uint32_t option) {
  const auto argument = [](unsigned n) { return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + n * 8); };
  return filter_this_thread(std::array<sock_filter, 6>{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(2)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, option, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}});
}

/// Makes it look like one without SO_PASSRIGHTS (before Linux 6.16).
[[nodiscard]] inline bool forget_pass_rights() {
  constexpr std::uint32_t kPassRights = 83;
  return forget_socket_option(SYS_setsockopt, kPassRights);
}

/// The filter's action for each start of a thread.
constexpr std::array<sock_filter, 5> at_each_thread(std::uint32_t action) {
  return {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
           BPF_STMT(BPF_RET | BPF_K, action), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
}

/// From now on no thread can be started.
[[nodiscard]] inline bool refuse_threads() { return filter_this_thread(at_each_thread(SECCOMP_RET_ERRNO | EAGAIN)); }

/// Decides, on a thread of its own, which system calls fail in the thread that makes this object, and in threads and
/// processes that are started from there later. After this object is destroyed, all calls fail for which it decided.
class DecidedCalls {
 public:
  /// `filter`: its action for these calls is SECCOMP_RET_USER_NOTIF. `decide`: takes the calling thread, and returns
  /// the errno with which the call fails, or 0 to let it pass.
  template <std::size_t N>
  DecidedCalls(const std::array<sock_filter, N>& filter, std::function<int(pid_t)> decide)
      : answers_([this, decide = std::move(decide)] { answer(decide); }),
        listener_(set_filter(filter, SECCOMP_FILTER_FLAG_NEW_LISTENER)) {
    begun_.set_value();
  }
  DecidedCalls(const DecidedCalls&) = delete;
  DecidedCalls& operator=(const DecidedCalls&) = delete;
  ~DecidedCalls() {
    over_ = true;
    answers_.join();
    if (can_be_had()) ::close(listener_);
  }
  [[nodiscard]] bool can_be_had() const noexcept { return listener_ >= 0; }

 private:
  void answer(const std::function<int(pid_t)>& decide) {
    begun_.get_future().wait();
    const auto of_thread = [&](const seccomp_notif& asked) { return decide(static_cast<pid_t>(asked.pid)); };
    while (can_be_had() && !over_) answer_call(listener_, of_thread);
  }

  std::promise<void> begun_;
  std::atomic<bool> over_ = false;
  std::thread answers_;  ///< Started before the filter is installed.
  const int listener_;
};

/// From now on, and for ever, this thread can start threads, but they can start none. After this object is destroyed,
/// this thread cannot start any either.
class NoThreadsOfThreads {
 public:
  [[nodiscard]] bool can_be_had() const noexcept { return starts_.can_be_had(); }
  /// How many threads were refused.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::atomic<std::size_t> count_ = 0;
  const DecidedCalls starts_{at_each_thread(SECCOMP_RET_USER_NOTIF), [this, starter = ::gettid()](pid_t thread) {
                               if (thread == starter) return 0;
                               ++count_;
                               return EAGAIN;
                             }};
};

}  // namespace testing_lrpc
