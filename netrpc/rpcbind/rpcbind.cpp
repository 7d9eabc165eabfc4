#include "lrpc/netrpc/rpcbind.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/blocking_call.h"
#include "netrpc/rpcbind/messages.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/record.h"

namespace lrpc::netrpc {

namespace rpcbind {
namespace {

Time now() { return MonotonicClock().now(); }
Time end_of(Duration timeout) { return now() + std::min<Duration>(timeout, std::chrono::hours(24)); }

/// One call to the local rpcbind, which is another program: it may be slow, or send anything.
class LocalCall {
 public:
  LocalCall(const std::string& path, Time until) : path_(path), until_(until) {}

  /// Makes the call and returns its results.
  [[nodiscard]] Result<std::vector<std::byte>> run(Procedure procedure, const SunProgram& served) {
    if (Status status = connect(); !status) return status.error();
    constexpr std::uint32_t kXid = 1;  // the only call of its connection
    const std::vector<std::byte> call = local_call(procedure, kXid, served);
    for (std::size_t sent = 0; sent < call.size();) {
      if (Status status = wait(POLLOUT); !status) return status.error();
      const ssize_t count = ::send(socket_.get(), call.data() + sent, call.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return failed("send");
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
    const Result<std::vector<std::byte>> record = receive_record();
    if (!record) return record.error();
    const auto results = results_of(*record, kXid);
    if (!results) return Error{results.code(), path_ + ": " + results.error().message()};
    return std::vector(results->begin(), results->end());
  }
  /// Calls set or unset. Returns whether rpcbind has done it.
  [[nodiscard]] Result<bool> change(Procedure procedure, const SunProgram& served) {
    const Result<std::vector<std::byte>> results = run(procedure, served);
    if (!results) return results.error();
    const std::optional<bool> answer = done(*results);
    if (!answer) return Error{Errc::bad_message, path_ + ": not an answer of rpcbind's"};
    return *answer;
  }

 private:
  [[nodiscard]] Error failed(const char* what) const {
    const int error = errno;
    const Errc code = error == ENOENT || error == ECONNREFUSED ? Errc::no_nameserver
                      : error == EACCES || error == EPERM      ? Errc::not_permitted
                      : error == EPIPE || error == ECONNRESET  ? Errc::peer_gone
                                                               : Errc::system_error;
    return {code, fmt::format("{}: {}: {}", path_, what, std::strerror(error))};
  }

  [[nodiscard]] Status connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return Error{Errc::invalid_argument, path_ + ": too long a path"};
    std::memcpy(address.sun_path, path_.data(), path_.size());
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return failed("socket");
    // EAGAIN: rpcbind's queue of connections is full. The kernel does not report when that changes.
    while (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      if (errno != EAGAIN && errno != EINTR) return failed("connect");
      if (now() >= until_) return Error{Errc::timed_out, path_ + ": rpcbind accepts nobody"};
      ::poll(nullptr, 0, 10);
    }
    return {};
  }

  /// Blocks until the socket is ready for `events` or closed. Errors: timed_out, those of failed().
  [[nodiscard]] Status wait(short events) const {
    pollfd one{.fd = socket_.get(), .events = events, .revents = 0};
    for (;;) {
      const Duration left = until_ - now();
      if (left <= Duration(0)) return Error{Errc::timed_out, path_ + ": rpcbind does not answer"};
      const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left_ms, INT32_MAX)));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return failed("poll");
    }
  }

  [[nodiscard]] Result<std::vector<std::byte>> receive_record() const {
    RecordReader reader(kMostAnswer);
    std::array<std::byte, 4096> area;
    for (;;) {
      if (Status status = wait(POLLIN); !status) return status.error();
      const ssize_t count = ::recv(socket_.get(), area.data(), area.size(), 0);
      if (count == 0) return Error{Errc::peer_gone, path_ + ": rpcbind has hung up"};
      if (count < 0 && errno != EAGAIN && errno != EINTR) return failed("recv");
      if (count < 0) continue;
      std::span<const std::byte> bytes(area.data(), static_cast<std::size_t>(count));
      const RecordReader::State state = reader.feed(bytes);
      const auto record = reader.record();
      if (state == RecordReader::State::record) return std::vector(record.begin(), record.end());
      if (state == RecordReader::State::wrong) return Error{Errc::bad_message, path_ + ": not an answer of rpcbind's"};
    }
  }

  const std::string& path_;
  const Time until_;
  UniqueFd socket_;
};

}  // namespace
}  // namespace rpcbind

RpcbindRegistration::RpcbindRegistration(const SunProgram& served, RpcbindOptions options)
    : served_(served), options_(std::move(options)) {}

RpcbindRegistration::RpcbindRegistration(RpcbindRegistration&& other) noexcept
    : served_(std::exchange(other.served_, {})), options_(std::move(other.options_)) {}

RpcbindRegistration& RpcbindRegistration::operator=(RpcbindRegistration&& other) noexcept {
  if (this == &other) return *this;
  const RpcbindRegistration old(std::move(*this));
  served_ = std::exchange(other.served_, {});
  options_ = std::move(other.options_);
  return *this;
}

/// rpcbind would remove whatever is registered there: RPCBPROC_UNSET does not look at the address (RFC 1833). So first
/// checks that it is this registration, and not that of a later server. A server that registers after the check loses
/// its entry: rpcbind has no call that does both. Without memory for what rpcbind lists, the registration stays, as
/// after a crash.
void RpcbindRegistration::end(Time until) noexcept {
  const SunProgram served = std::exchange(served_, {});
  if (served.program == 0) return;
  attempt([&] {
    const auto all = rpcbind::LocalCall(options_.socket, until).run(rpcbind::Procedure::dump, served);
    if (all && rpcbind::lists(*all, served))
      (void)rpcbind::LocalCall(options_.socket, until).change(rpcbind::Procedure::unset, served);
  });
}

RpcbindRegistration::~RpcbindRegistration() { end(rpcbind::end_of(options_.timeout)); }

void RpcbindRegistration::end_all(std::span<RpcbindRegistration> registrations, Duration timeout) noexcept {
  const Time until = rpcbind::end_of(timeout);
  for (RpcbindRegistration& one : registrations) one.end(until);
}

Result<RpcbindRegistration> RpcbindRegistration::make(const SunProgram& served, const RpcbindOptions& options) {
  if (served.program == 0 || served.port == 0)
    return Error{Errc::invalid_argument, "a registration with rpcbind needs a program and a port"};
  const Time until = rpcbind::end_of(options.timeout);
  if (options.replaces) {  // whether there was one does not matter
    const Result<bool> unset = rpcbind::LocalCall(options.socket, until).change(rpcbind::Procedure::unset, served);
    if (!unset) return unset.error();
  }
  const Result<bool> set = rpcbind::LocalCall(options.socket, until).change(rpcbind::Procedure::set, served);
  if (!set) return set.error();
  if (!*set)
    return Error{Errc::name_taken,
                 fmt::format("rpcbind does not register version {} of program {}", served.version, served.program)};
  return RpcbindRegistration(served, options);
}

Result<std::uint16_t> rpcbind_port(Protocol& sun, Protocol& user, HostAddress host, std::uint32_t program,
                                   std::uint32_t version, Duration timeout, SunTransport transport,
                                   const std::function<bool()>& gone) {
  constexpr std::size_t kMostResults = 128;  // more than a port or an address has
  const Time until = sun.host().now() + std::min<Duration>(timeout, std::chrono::hours(24));
  const Shepherd inside(sun.host().monitor());
  ParticipantSet participants;
  participants.remote.host = host;
  participants.remote.port = rpcbind::kPort;
  participants.remote.program = rpcbind::kProgram;
  participants.remote.procedure = static_cast<std::uint32_t>(rpcbind::Procedure::port_of);
  Errc outcome = Errc::call_failed;
  for (std::uint32_t speaks = rpcbind::kNewest; speaks >= rpcbind::kPortMapper; --speaks) {
    participants.remote.version = speaks;
    const Result<SessionRef> session = sun.open(user, participants);
    if (!session) return session.error();
    const Duration left = until - sun.host().now();
    if (left <= Duration(0)) return Error{Errc::call_aborted, "rpcbind does not answer"};
    Message question = Message::copy_of(sun.host().pool(), rpcbind::lookup(speaks, program, version, transport));
    if (!question.allocated()) return Error{Errc::limit_reached, "no buffer for the question to rpcbind"};
    Message reply;
    outcome = call_and_wait_inside(**session, std::move(question), reply, left, gone);
    if (outcome == Errc::version_mismatch) continue;
    if (outcome != Errc::ok) break;
    std::vector<std::byte> results(std::min<std::size_t>(reply.size(), kMostResults));
    reply.copy_to(results);
    const std::optional<std::uint16_t> port = rpcbind::found(speaks, results);
    if (!port) return Error{Errc::bad_message, "not an answer of rpcbind's"};
    if (*port == 0) return Error{Errc::name_unknown, fmt::format("program {} is not registered there", program)};
    return *port;
  }
  return Error{outcome, "rpcbind did not answer the question for a port"};
}

}  // namespace lrpc::netrpc
