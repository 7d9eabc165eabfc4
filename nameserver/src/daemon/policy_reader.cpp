#include "policy_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/detail/shim/system/lack.h"

namespace lrpc::nameserver {
namespace {

/// An answer begins with 'P' and an encoded source, or with 'E' and an error's text.
constexpr char kPolicy = 'P';
constexpr char kError = 'E';
constexpr std::size_t kLongestAnswer = 8U << 20;
constexpr std::size_t kBuffer = 65536;
constexpr int kSocket = 3;

bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

bool answer(int socket, const std::string& path) {
  const auto source = load_policy_source(path);
  const std::string body = source ? kPolicy + encode(*source) : kError + source.error().message();
  const auto size = static_cast<std::uint32_t>(body.size());
  return write_all(socket, {reinterpret_cast<const char*>(&size), sizeof size}) && write_all(socket, body);
}

Error gone() {
  return {Errc::peer_gone, "the process that reads the policy is gone; restart lrpcd to have it read again"};
}

/// Of lrpcd's descriptors, this process keeps only its end of the pair. It ignores signals that are sent to the whole
/// process group: they are meant for lrpcd.
[[noreturn]] void read_on_request(int socket, const std::string& path) {
  ::prctl(PR_SET_NAME, "lrpcd-policy");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also in the middle of a look-up
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  const int null = shim::open_null();
  if (null < 0 || (socket != kSocket && ::dup2(socket, kSocket) < 0)) ::_exit(1);
  for (int standard = 0; standard < kSocket; ++standard) ::dup2(null, standard);
  ::close_range(kSocket + 1, ~0U, 0);
  char requests[64];
  for (;;) {
    const ssize_t got = ::read(kSocket, requests, sizeof requests);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !answer(kSocket, path)) ::_exit(0);
  }
}

}  // namespace

Result<PolicyReader> PolicyReader::start(const std::string& path) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair", errno);
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t process = ::fork();
  if (process < 0) return system_error("cannot start the reader of policies: fork", errno);
  if (process == 0) read_on_request(theirs.get(), path);
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("O_NONBLOCK", errno);
  PolicyReader made(std::move(ours));
  made.received_.reserve(kLongestAnswer + kBuffer);  // so take() needs no memory to read; untouched until then
  return made;
}

Status PolicyReader::ask() {
  // If the queue is full, requests are pending already.
  if (::write(socket_.get(), "?", 1) == 1 || errno == EAGAIN) return {};
  const int err = errno;
  if (!shim::is_lack(err)) return gone();
  return Error{Errc::system_error, std::string("the process that reads the policy could not be asked (") +
                                       std::strerror(err) + "): send SIGHUP again"};
}

Result<std::optional<PolicySource>> PolicyReader::take() {
  char buffer[kBuffer];
  for (;;) {
    const ssize_t got = ::read(socket_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) return gone();
    received_.append(buffer, static_cast<std::size_t>(got));
    if (received_.size() > kLongestAnswer) return gone();
  }
  std::uint32_t size = 0;
  if (received_.size() < sizeof size) return std::optional<PolicySource>();
  std::memcpy(&size, received_.data(), sizeof size);
  if (received_.size() < sizeof size + size) return std::optional<PolicySource>();
  const std::string body = received_.substr(sizeof size, size);
  received_.erase(0, sizeof size + size);
  if (body.empty()) return gone();
  if (body.front() != kPolicy) return Error{Errc::invalid_argument, body.substr(1)};
  auto source = decode_policy_source(std::string_view(body).substr(1));
  if (!source) return source.error();
  return std::optional(*std::move(source));
}

}  // namespace lrpc::nameserver
