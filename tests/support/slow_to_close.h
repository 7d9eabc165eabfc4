// Descriptors whose close(2) blocks: until a test releases them, or for ever.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fuse_without_flush.h"
#include "lrpc/detail/shim/system/fd.h"
#include "send_packet.h"

namespace testing_lrpc {

/// A descriptor whose close(2) blocks while this object exists. The test gives copies away, then closes its own. Each
/// kind fails the test if the wait ended too early: then the test has not shown that nobody waited.
class SlowToClose {
 public:
  SlowToClose() = default;
  SlowToClose(const SlowToClose&) = delete;
  SlowToClose& operator=(const SlowToClose&) = delete;
  virtual ~SlowToClose() = default;
  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  /// Closes the test's own copy. Another copy must exist.
  virtual void give_away() { fd_.reset(); }
  /// The same in a thread that may block, because another thread or process may close its copy first.
  void give_away_meanwhile() {
    if (fd_) closer_ = std::thread([fd = std::move(fd_)]() mutable { fd.reset(); });
  }

 protected:
  /// Call this when nothing blocks any more.
  void close_the_rest() {
    if (closer_.joinable()) closer_.join();
    fd_.reset();
  }
  lrpc::UniqueFd fd_;

 private:
  std::thread closer_;
};

/// A lingering TCP connection with unsent data, whose peer reads nothing.
class LingeringConnection : public SlowToClose {
 public:
  LingeringConnection() {
    const lrpc::UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const auto where = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.get(), where, size) != 0 || listen(listener.get(), 1) != 0 ||
        getsockname(listener.get(), where, &size) != 0)
      return;
    lrpc::UniqueFd end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)connect(end.get(), where, size);
    peer_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::array<char, 65536> bytes{};
    for (int i = 0; i < 1000 && write(end.get(), bytes.data(), bytes.size()) > 0;) ++i;
    constexpr int kLongerThanAnyTest = 36'000;  // seconds
    const linger long_time{1, kLongerThanAnyTest};
    const bool lingers = setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time) == 0 &&
                         fcntl(end.get(), F_SETFL, fcntl(end.get(), F_GETFL) & ~O_NONBLOCK) == 0;
    if (lingers && peer_) fd_ = std::move(end);
  }
  ~LingeringConnection() override {
    EXPECT_TRUE(!peer_ || is_connected()) << "the connection ended before the test";
    peer_.reset();  // has unread data: that resets the connection
    close_the_rest();
  }

 private:
  /// While this is true, the lingering end still has unsent data.
  [[nodiscard]] bool is_connected() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    return getsockopt(peer_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_ESTABLISHED;
  }
  lrpc::UniqueFd peer_;
};

/// An AF_UNIX socket that has another socket in its receive queue.
class LadenSocket : public SlowToClose {
 public:
  LadenSocket() {
    std::array<int, 2> ends{};
    if (inner_->get() < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    other_.reset(ends[0]);
    lrpc::UniqueFd laden(ends[1]);
    if (send(other_.get(), inner_->get())) fd_ = std::move(laden);
    inner_->give_away();
  }
  ~LadenSocket() override {
    inner_.reset();  // resets the connection, so that the rest does not block
    close_the_rest();
  }
  /// Sends one message with `fd`.
  static bool send(int socket, int fd) {
    return send_packet(socket, std::array{std::byte{'x'}}, std::array{fd}, MSG_DONTWAIT);
  }

 private:
  std::unique_ptr<LingeringConnection> inner_ = std::make_unique<LingeringConnection>();
  lrpc::UniqueFd other_;
};

/// A file of a FUSE file system whose daemon answers everything but FLUSH. Needs root and /dev/fuse.
///
/// The daemon is a separate process, and ends as soon as the test is being killed: a process that waits for a FLUSH
/// cannot be killed before.
class StuckFile : public SlowToClose {
 public:
  StuckFile() {
    const lrpc::UniqueFd made(mkstemp(path_.data()));
    device_.reset(open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!made || !device_) return;
    if (mount_without_flush(path_, device_.get())) {
      test_.reset(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
      daemon_ = fork();
      if (daemon_ == 0) serve();
      device_.reset();
      test_.reset();
      fd_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    }
  }
  ~StuckFile() override {
    EXPECT_TRUE(daemon_ <= 0 || daemon_runs()) << "the file was no longer stuck before the test ended";
    // Ends the connection, which wakes all waiting threads. Ending the daemon would not do it at once: the daemon has
    // inherited other such files, and blocks on their FLUSH itself.
    umount2(path_.c_str(), MNT_FORCE | MNT_DETACH);
    unlink(path_.c_str());
    if (daemon_ > 0) {
      kill(daemon_, SIGKILL);
      waitpid(daemon_, nullptr, WNOHANG);
    }
    close_the_rest();
  }
  /// In a thread: every close(2) of this file waits for its FLUSH, even if other copies are open.
  void give_away() override { give_away_meanwhile(); }

 private:
  [[nodiscard]] bool daemon_runs() const {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(daemon_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
  }
  /// Whether the test's main thread is exiting or has a pending SIGKILL.
  [[nodiscard]] bool test_is_ending() const {
    constexpr unsigned kExiting = 4;  // PF_EXITING
    std::array<char, 1024> line{};
    const bool known = pread(test_.get(), line.data(), line.size() - 1, 0) > 0;
    const char* words = known ? std::strrchr(line.data(), ')') : nullptr;  // after the name, the second word
    unsigned long flags = kExiting;
    for (int word = 3; words != nullptr && word <= 31; ++word) {
      words = std::strchr(words + 1, ' ');
      if (words == nullptr) break;
      if (word == 9) flags = std::strtoul(words, nullptr, 10);
      if (word == 31 && (std::strtoul(words, nullptr, 10) >> (SIGKILL - 1) & 1) != 0) return true;
    }
    return (flags & kExiting) != 0;
  }
  [[noreturn]] void serve() {
    constexpr int kPauseMs = 1000;
    for (;;) {
      pollfd entry{device_.get(), POLLIN, 0};
      if (poll(&entry, 1, kPauseMs) <= 0 && test_is_ending()) _exit(0);
      if (!serve_without_flush(device_.get())) _exit(0);
    }
  }

  lrpc::UniqueFd device_;
  lrpc::UniqueFd test_;  ///< For the daemon: /proc/PID/stat of the test.
  std::string path_ = "/tmp/lrpc-stuck-XXXXXX";
  pid_t daemon_ = -1;
};

/// All kinds, for parameterised tests.
enum class Slow { stuck_file, lingering, laden };
inline constexpr std::array kSlow{Slow::stuck_file, Slow::lingering, Slow::laden};
inline std::string name_of(Slow slow) {
  return slow == Slow::stuck_file ? "stuck_file" : slow == Slow::lingering ? "lingering" : "laden";
}
/// Null: it cannot be made on this machine.
inline std::unique_ptr<SlowToClose> make(Slow slow) {
  std::unique_ptr<SlowToClose> made;
  if (slow == Slow::stuck_file) made = std::make_unique<StuckFile>();
  if (slow == Slow::lingering) made = std::make_unique<LingeringConnection>();
  if (slow == Slow::laden) made = std::make_unique<LadenSocket>();
  if (made->get() < 0) return nullptr;
  return made;
}

}  // namespace testing_lrpc
