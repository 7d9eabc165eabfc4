#include "netrpc/test_support/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

extern char** environ;

namespace lrpc::netrpc::test {

namespace {

constexpr const char* kOwn = "/proc/thread-self/ns/net";

/// Runs a program with these arguments in the calling thread's namespace; the exit status, -1 if it could not be run.
int run_program(const char* program, const std::string& arguments) {
  std::vector<std::string> words{program};
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, program, nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The outcome of `probe` in a temporary namespace.
std::optional<std::string> why_not(const std::function<std::optional<std::string>()>& probe) {
  std::optional<std::string> why;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      why = std::string("network namespaces cannot be made: ") + std::strerror(errno);
    } else {
      why = probe();
    }
  }).join();
  return why;
}

/// Arguments of `ip` for a new veth pair whose ends have different indexes. If both had the same index, the kernel
/// would take them for one link, and wait up to a second before it uses a link that has just come up.
std::string pair_of_links(const std::string& name, const std::string& peer) {
  static std::atomic<int> last{1000};
  const auto index = [] { return " index " + std::to_string(++last); };
  return "link add " + name + index() + " type veth peer name " + peer + index();
}

/// Waits until the kernel uses a new link; at most 4 minutes.
void wait_until_running(const Namespace& where, const std::string& name) {
  where.run([&] {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    for (int tries = 0; tries < 240'000; ++tries) {
      if (::ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::close(socket);
  });
}

}  // namespace

Namespace::Namespace() {
  // In a thread of its own, so that the caller stays in its namespace.
  int error = 0;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) fd_ = ::open(kOwn, O_RDONLY | O_CLOEXEC);
    error = errno;
  }).join();
  if (fd_ < 0) throw std::system_error(error, std::generic_category(), "unshare(CLONE_NEWNET)");
  ip("link set lo up");
}

Namespace::~Namespace() {
  if (fd_ >= 0) ::close(fd_);
}

void Namespace::run(const std::function<void()>& procedure, bool back) const {
  const int before = ::open(kOwn, O_RDONLY | O_CLOEXEC);
  if (before < 0 || ::setns(fd_, CLONE_NEWNET) != 0)
    throw std::system_error(errno, std::generic_category(), "entering a network namespace");
  struct Back {
    int fd;
    bool wanted;
    ~Back() {
      if (wanted && ::setns(fd, CLONE_NEWNET) != 0) std::abort();  // the thread would go on in a foreign network
      ::close(fd);
    }
  } const back_again{before, back};
  procedure();
}

void Namespace::run_or_throw(const char* program, const std::string& arguments) const {
  run([&] {
    if (run_program(program, arguments) != 0)
      throw std::runtime_error(std::string("failed: ") + program + " " + arguments);
  });
}

void Namespace::ip_often(const std::string& what, const std::string& last) const {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += what + std::to_string(i % 10) + "\n";
  lines += last + "\n";
  const int batch = ::memfd_create("batch", MFD_CLOEXEC);
  const bool written = ::write(batch, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  if (written) ip("-batch /proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(batch));
  ::close(batch);
  if (!written) throw std::runtime_error("commands for `ip -batch` cannot be written");
}

std::string Namespace::path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_); }

void Namespace::forward() const {
  run([] {
    const int file = ::open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
    const bool written = file >= 0 && ::write(file, "1", 1) == 1;
    if (file >= 0) ::close(file);
    if (!written) throw std::runtime_error("forwarding cannot be switched on in a network namespace");
  });
}

std::optional<std::string> why_no_namespaces() {
  return why_not([]() -> std::optional<std::string> {
    if (run_program("ip", "link set lo up") != 0) return "iproute2's `ip` is not there, or is not permitted";
    if (run_program("ip", "link add probe type veth peer name probed") != 0) return "veth pairs cannot be made";
    return std::nullopt;
  });
}

std::optional<std::string> why_no_bridges() {
  return why_not([]() -> std::optional<std::string> {
    if (run_program("ip", "link add probe type bridge") != 0) return "bridges cannot be made";
    const int file = ::open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
    if (file < 0) return "forwarding cannot be switched on";
    ::close(file);
    return std::nullopt;
  });
}

std::optional<std::string> why_no_netem() {
  return why_not([]() -> std::optional<std::string> {
    if (run_program("tc", "qdisc add dev lo root netem loss 10%") != 0)
      return "this kernel has no netem, or iproute2's `tc` is not there";
    return std::nullopt;
  });
}

std::optional<std::string> why_no_nftables() {
  return why_not([]() -> std::optional<std::string> {
    if (run_program("nft", "add table netdev probe") != 0 ||
        run_program("nft", "add chain netdev probe in { type filter hook ingress device lo priority 0 ; }") != 0 ||
        run_program("nft", "add rule netdev probe in numgen random mod 10 0 drop") != 0)
      return "this kernel has no nftables at a device's ingress, or `nft` is not there";
    return std::nullopt;
  });
}

Bridge::Bridge() {
  where_.ip("link add bridge type bridge");
  where_.ip("link set bridge up");
}

void Bridge::plug(const Namespace& host, const std::string& name, const std::string& address) {
  const std::string port = "port" + std::to_string(++ports_);
  where_.ip(pair_of_links(port, name) + " netns " + host.path());
  where_.ip("link set " + port + " master bridge");
  where_.ip("link set " + port + " up");
  host.ip("address add " + address + " dev " + name);
  host.ip("link set " + name + " up");
  wait_until_running(where_, port);
  wait_until_running(host, name);
}

void join(const Namespace& a, const std::string& name_a, const std::string& address_a, const Namespace& b,
          const std::string& name_b, const std::string& address_b) {
  a.ip(pair_of_links(name_a, name_b) + " netns " + b.path());
  a.ip("address add " + address_a + " dev " + name_a);
  b.ip("address add " + address_b + " dev " + name_b);
  a.ip("link set " + name_a + " up");
  b.ip("link set " + name_b + " up");
  wait_until_running(a, name_a);
  wait_until_running(b, name_b);
}

}  // namespace lrpc::netrpc::test
