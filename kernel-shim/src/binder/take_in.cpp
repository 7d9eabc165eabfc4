#include "take_in.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <semaphore>
#include <utility>

#include "aside.h"
#include "control_message.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "lrpc/detail/shim/system/pidfd.h"

namespace lrpc::shim {
namespace {

/// Whether `fd` is of a kind that is accepted. The checks call only the kernel, not the file's own driver, which could
/// block.
bool is_wanted(int fd) noexcept {
  return is_socket_pair_end(fd) || ::fcntl(fd, F_GET_SEALS) >= 0 || is_seccomp_listener(fd);
}

/// The most control data of one message: all descriptors, credentials, a pidfd, a security label.
constexpr std::size_t kMostControl =
    CMSG_SPACE(kMostPacketFds * sizeof(int)) + CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int)) + 512;

/// One take_in(): run() is called by the thread that receives, the porter; wait() and let_go() by the caller of
/// take_in().
class Porter {
 public:
  Porter(int socket, int handover, std::span<std::byte> room, Stranger stranger)
      : socket_(socket), handover_(handover), room_(room), stranger_(std::move(stranger)) {
    numbers_.reserve(2 * (kMostPacketFds + 1));
  }

  void run(Table table) noexcept;
  Intake wait() noexcept {
    received_.acquire();
    return std::move(intake_);
  }
  /// `taken`: the caller has copies of the descriptors. Then it returns when the porter has closed its own.
  void let_go(bool taken) noexcept {
    kept_ = taken;
    taken_.release();
    if (taken) closed_.acquire();
  }
  [[nodiscard]] bool handed_over() const noexcept { return handed_over_; }

 private:
  bool fetch_sockets() noexcept;
  void work(bool looks_first) noexcept;
  [[nodiscard]] bool is_as_looked_at() const noexcept;
  ssize_t receive(msghdr& header, int flags) noexcept;
  void hand_over() noexcept;

  int socket_;
  int handover_;  ///< Where to send descriptors. Negative: this process is out of descriptors.
  std::span<std::byte> room_;
  Stranger stranger_;
  Intake intake_;
  std::vector<int> numbers_;  ///< All that came, in the porter's table; ~number if no peer sent it.
  std::size_t first_ = 0;     ///< Index of the first of the message itself; those before it are from the peek.
  bool handed_over_ = false;
  bool kept_ = false;  ///< The caller has copies of all that is closed here.
  std::binary_semaphore received_{0};
  std::binary_semaphore taken_{0};
  std::binary_semaphore closed_{0};
};

/// Copies the two sockets from the process's table into the thread's own, which is empty.
bool Porter::fetch_sockets() noexcept {
  const UniqueFd process = pidfd_of(::getpid());
  socket_ = copy_from(process, socket_).release();  // run() closes both
  if (handover_ >= 0) handover_ = copy_from(process, handover_).release();
  return socket_ >= 0;
}

ssize_t Porter::receive(msghdr& header, int flags) noexcept {
  const ssize_t size = ::recvmsg(socket_, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
  if (size < 0) return size;
  if (const auto sender = credentials_in(header)) intake_.sender = sender;
  for_each_descriptor(header, [this](int number, bool sent) {
    if (numbers_.size() < numbers_.capacity()) numbers_.push_back(sent ? number : ~number);
  });
  return size;
}

/// Whether two descriptors are of one socket, or of one memfd. A peer's own files were refused before.
bool is_same(int one, int other) noexcept {
  struct stat first {};
  struct stat second {};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/// Whether the received descriptors are those of the peek. If not, the copies from the peek may be the last ones.
bool Porter::is_as_looked_at() const noexcept {
  if (numbers_.size() != 2 * first_) return false;
  for (std::size_t i = 0; i < first_; ++i) {
    const int looked = numbers_[i];
    const int received = numbers_[first_ + i];
    if ((looked < 0) != (received < 0) || (looked >= 0 && !is_same(looked, received))) return false;
  }
  return true;
}

void Porter::work(bool looks_first) noexcept {
  alignas(cmsghdr) std::array<char, kMostControl> control;  // NOLINT: the kernel writes it
  iovec data{room_.data(), room_.size()};
  if (looks_first) {
    // recvmsg(2) closes descriptors that do not fit, which can block. So peek first, which leaves the message queued:
    // while the copies from the peek exist, a descriptor that recvmsg(2) closes is not the last copy.
    msghdr looked = header_of(data, control);
    if (receive(looked, MSG_PEEK) < 0) {
      intake_.err = errno;
    } else if ((looked.msg_flags & MSG_CTRUNC) != 0) {
      intake_.err = ENOBUFS;
    } else if (numbers_.size() > kMaxBinderFds) {
      intake_.err = E2BIG;
    }
    if (intake_.err != 0) return;
    first_ = numbers_.size();
  }
  msghdr header = header_of(data, control);
  intake_.size = receive(header, 0);
  if (intake_.size < 0) {
    intake_.err = errno;
    return;
  }
  intake_.cut = (header.msg_flags & MSG_TRUNC) != 0;
  intake_.fds_lost = (header.msg_flags & MSG_CTRUNC) != 0;
  std::size_t sent = 0;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i] < 0) continue;
    sent += i >= first_ ? 1 : 0;
    intake_.fds_refused |= !is_wanted(numbers_[i]);
  }
  intake_.fds_refused |= sent > kMaxBinderFds;
  if (looks_first && !intake_.fds_refused && !intake_.fds_lost) intake_.fds_refused = !is_as_looked_at();
  if (sent != 0 && !intake_.fds_refused && !intake_.fds_lost) hand_over();
}

/// Sends the accepted descriptors to the process's own table.
void Porter::hand_over() noexcept {
  std::array<int, kMaxBinderFds> wanted{};
  std::size_t count = 0;
  for (std::size_t i = first_; i < numbers_.size(); ++i) {
    if (numbers_[i] >= 0) wanted[count++] = numbers_[i];
  }
  const auto told = static_cast<std::byte>(count);
  handed_over_ =
      handover_ >= 0 && send_packet(handover_, {&told, 1}, std::span(wanted).first(count), MSG_DONTWAIT) == 1;
  intake_.fds_lost = !handed_over_;
}

void Porter::run(Table table) noexcept {
  const bool apart = table == Table::own;
  if (table == Table::none || (apart && !fetch_sockets())) {
    intake_.err = ENOSYS;
  } else {
    rlimit limit{};
    work(!apart || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < kLeastDescriptors);
  }
  std::optional<HeldUp> held_up;
  intake_.fds_lost |= intake_.size < 0 && !numbers_.empty();  // copies from a peek; the message is still queued
  if (intake_.fds_refused || intake_.fds_lost) held_up.emplace(stranger_.user);  // before the next is received
  received_.release();
  taken_.acquire();  // the caller has copies of what it has taken; nobody else closes the rest
  if (!kept_ && !held_up) held_up.emplace(stranger_.user);
  for (const int number : numbers_) UniqueFd(number < 0 ? ~number : number).reset();
  if (apart) (void)::syscall(SYS_close_range, 0U, ~0U, 0);
  stranger_.account.reset();
  closed_.release();
}

/// Takes what the porter has handed over. False: not all of it has come.
bool take_over(int handover, std::vector<UniqueFd>& fds) {
  std::array<int, kMaxBinderFds> numbers;
  std::byte told{};
  if (receive_packet(handover, {&told, 1}, numbers) != 1) return false;
  for (const int number : numbers) {
    if (number >= 0) fds.emplace_back(number);
  }
  if (fds.size() == std::to_integer<std::size_t>(told)) return true;
  fds.clear();  // the porter still has them
  return false;
}

}  // namespace

Intake take_in(int socket, std::span<std::byte> room, const Stranger& stranger, std::chrono::milliseconds patience) {
  const auto handover = make_socket_pair();
  const int there = handover ? handover->second.get() : -1;
  Intake intake;
  for (const bool apart : {true, false}) {
    std::vector<UniqueFd> fds;
    fds.reserve(kMaxBinderFds);
    const auto porter = std::make_shared<Porter>(socket, there, room, stranger);
    if (!run_aside(
            stranger.user, [porter](Table table) { porter->run(table); }, patience, apart))
      return {.err = ENOBUFS};
    intake = porter->wait();
    if (porter->handed_over() && !take_over(handover->first.get(), fds)) intake.fds_lost = true;
    porter->let_go(!intake.fds_refused && !intake.fds_lost);
    intake.fds = std::move(fds);
    if (intake.err != ENOSYS) break;  // nothing has been received: once more, in the process's own table
  }
  return intake;
}

}  // namespace lrpc::shim
