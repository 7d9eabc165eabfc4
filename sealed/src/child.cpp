#include "child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "filter.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "lrpc/detail/shim/system/lack.h"
#include "lrpc/detail/shim/trap/trap.h"

namespace lrpc::sealed {
namespace {

/// While descriptors are rearranged, copies get numbers from here: above all numbers that have a meaning.
constexpr int kOutOfTheWay = 64;

[[noreturn]] void give_up(const ChildPlan& plan, Step step, int err) noexcept {
  const Report report{.step = step, .err = err};
  (void)shim::send_packet(plan.control, bytes_of(report));
  _exit(1);
}

/// How long to wait for a nameserver that does not accept, as in an ordinary import (shim::connect_nameserver()).
constexpr timeval kConnectTime{5, 0};

/// A connection to the first nameserver that accepts, which is noted in `report`. If descriptors or memory lack for a
/// connection, the next nameserver is not tried, because this one may be there.
int connect_nameserver(const ChildPlan& plan, Report& report) noexcept {
  int err = ENOENT;
  for (std::uint32_t place = 0; place < plan.nameservers.size(); ++place) {
    const std::string& path = plan.nameservers[place];
    sockaddr_un address{AF_UNIX, {}};
    if (path.size() >= sizeof address.sun_path) {
      err = ENAMETOOLONG;
      continue;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) give_up(plan, Step::connecting, errno);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kConnectTime, sizeof kConnectTime);
    do {  // signals are blocked, but stopping and continuing the process interrupts connect(2) all the same
      err = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
    } while (err == EINTR);
    if (err == 0) {
      report.nameserver = place;
      return fd;
    }
    close(fd);
    if (shim::is_lack(err)) break;
  }
  give_up(plan, Step::connecting, err);
}

/// Sends the import request itself, so that the nameserver or the private server sees this process as the client. Then
/// hands the connection to the launcher, also if it could not send: the nameserver may have said why.
void ask(const ChildPlan& plan) noexcept {
  Report report;
  const int fd = plan.socket >= 0 ? plan.socket : connect_nameserver(plan, report);
  // Nothing has been sent on it before. If it has no room, a private server has filled it and may never read: do not
  // wait.
  if (shim::send_packet(fd, plan.request, {}, MSG_DONTWAIT) < 0) {
    report.step = Step::asking;
    report.err = errno;
  }
  if (shim::send_packet(plan.control, bytes_of(report), {&fd, 1}) < 0 || report.step != Step::asked) _exit(1);
  close(fd);
}

/// Descriptors for the last two system calls, numbered from kOutOfTheWay, close-on-exec.
struct Kept {
  int program = -1;
  int bell = -1;
};
/// Receives the inheritance. Descriptors 0 to 2 stay, 3 and 4 become the binding's; all others are closed by exec.
Kept arrange(ChildPlan& plan, Inheritance& inheritance) noexcept {
  std::array<int, Inheritance::kFds> fds{};
  const ssize_t got = shim::receive_packet(plan.control, room_of(inheritance), fds);
  if (got != static_cast<ssize_t>(sizeof inheritance)) _exit(1);  // the launcher knows why
  std::array<int, 4> moved{};
  const std::array<int, 4> wanted{fds[0], fds[1], fds[2], plan.program};
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, kOutOfTheWay);
    if (moved[i] < 0) give_up(plan, Step::arranging, wanted[i] < 0 ? EMFILE : errno);  // no number for what was sent
  }
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) give_up(plan, Step::arranging, errno);
  // The control socket may itself have one of the two numbers.
  const int control = fcntl(plan.control, F_DUPFD_CLOEXEC, kOutOfTheWay);
  if (control < 0 || dup2(moved[0], shim::kSealedRegionFd) < 0 || dup2(moved[1], shim::kSealedDescriptionFd) < 0) {
    give_up(plan, Step::arranging, errno);
  }
  plan.control = control;
  return {moved[3], moved[2]};
}

/// Resets all handlers: they belong to the program that this process was forked from, and must not run here when
/// signals are unblocked.
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
  // This process dies with the thread that launched it. A hang-up of a socket would not tell: all children have copies
  // of the other ends.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != plan.launcher) _exit(1);
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
  // MSG_DONTWAIT as in ask(): the server may have made the bell and filled it.
  if (shim::send_packet(kept.bell, bytes_of(offer), {&listener, 1}, MSG_DONTWAIT) < 0) _exit(errno);
  syscall(SYS_execveat, kept.program, "", plan.arguments.data(), plan.environment.data(), AT_EMPTY_PATH);
  _exit(errno);
}

}  // namespace lrpc::sealed
