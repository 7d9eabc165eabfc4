#include "child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "filter.h"
#include "lrpc/shim/binder/bell.h"
#include "lrpc/shim/trap/trap.h"

namespace lrpc::sealed {
namespace {

/// Room for what the two sides send one another.
union Control {
  char bytes[CMSG_SPACE(Inheritance::kFds * sizeof(int))];
  cmsghdr align;
};
/// Above all descriptors that have a meaning, while they are being moved about.
constexpr int kOutOfTheWay = 64;

[[noreturn]] void give_up(const ChildPlan& plan, Step step, int err) noexcept {
  const Report report{step, err};
  (void)send_packet(plan.control, &report, sizeof report, {});
  _exit(1);
}

/// A connection to the first nameserver that answers.
int connect_nameserver(const ChildPlan& plan) noexcept {
  int err = ENOENT;
  for (const std::string& path : plan.nameservers) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
      err = ENAMETOOLONG;
      continue;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) give_up(plan, Step::connecting, errno);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    err = errno;
    close(fd);
  }
  give_up(plan, Step::connecting, err);
}

/// Asks to be bound: the nameserver, or the private server, sees this very process.
void ask(const ChildPlan& plan) noexcept {
  const int fd = plan.socket >= 0 ? plan.socket : connect_nameserver(plan);
  if (send_packet(fd, plan.request.data(), plan.request.size(), {}) < 0) give_up(plan, Step::asking, errno);
  const Report report{Step::asked, 0};
  if (send_packet(plan.control, &report, sizeof report, {&fd, 1}) < 0) _exit(1);
  close(fd);
}

/// Descriptors 0 to 2 stay, 3 and 4 are the binding's; everything else goes when the program is executed.
struct Kept {
  int program = -1;
  int bell = -1;
};
Kept arrange(ChildPlan& plan, Inheritance& inheritance) noexcept {
  std::array<int, Inheritance::kFds> fds{};
  const ssize_t got = receive_packet(plan.control, &inheritance, sizeof inheritance, fds);
  if (got != static_cast<ssize_t>(sizeof inheritance)) _exit(1);  // the launcher knows why
  std::array<int, 4> moved{};
  const std::array<int, 4> wanted{fds[0], fds[1], fds[2], plan.program};
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, kOutOfTheWay);
    if (moved[i] < 0) give_up(plan, Step::arranging, errno);
  }
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) give_up(plan, Step::arranging, errno);
  // The control socket may be in the way itself.
  const int control = fcntl(plan.control, F_DUPFD_CLOEXEC, kOutOfTheWay);
  if (control < 0 || dup2(moved[0], shim::kSealedRegionFd) < 0 || dup2(moved[1], shim::kSealedDescriptionFd) < 0) {
    give_up(plan, Step::arranging, errno);
  }
  plan.control = control;
  return {moved[3], moved[2]};
}

/// The handlers are those of the program that we were forked from: none may run here, once signals are let through
/// again.
void forget_handlers() noexcept {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < _NSIG; ++number) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) (void)sigaction(number, &standard, nullptr);
  }
}

}  // namespace

void run_child(ChildPlan& plan) noexcept {
  ask(plan);
  Inheritance inheritance;
  const Kept kept = arrange(plan, inheritance);
  plan.environment.front() = inheritance.variable.data();

  forget_handlers();
  sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  const int listener = install_filter(plan.filter.data(), plan.filter.size());
  if (listener < 0) give_up(plan, Step::sealing, -listener);
  // From here on the filter holds; the supervisor lets exactly these two calls pass.
  const auto offer = static_cast<char>(shim::BellMessage::trap);
  if (send_packet(kept.bell, &offer, 1, {&listener, 1}) < 0) _exit(errno);
  syscall(SYS_execveat, kept.program, "", plan.arguments.data(), plan.environment.data(), AT_EMPTY_PATH);
  _exit(errno);
}

ssize_t send_packet(int socket, const void* data, std::size_t size, std::span<const int> fds) noexcept {
  iovec part{const_cast<void*>(data), size};  // NOLINT: sendmsg only reads
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t receive_packet(int socket, void* data, std::size_t size, std::span<int> fds, int flags) noexcept {
  std::ranges::fill(fds, -1);
  iovec part{data, size};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(fds.size_bytes());
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(fds.data(), CMSG_DATA(one), std::min(fds.size_bytes(), one->cmsg_len - CMSG_LEN(0)));
  }
  return got;
}

}  // namespace lrpc::sealed
