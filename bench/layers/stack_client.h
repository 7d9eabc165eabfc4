// One end of a stack, and round trips through it: a request of some bytes, a null reply or one of some bytes.
#pragma once

#include <cstddef>

#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::bench {

/// Stands on top of a stack. At the server it answers each message, or each so-manieth, with as many bytes as it is
/// told, none at first; at the client it counts answers.
class StackUser final : public netrpc::Protocol {
 public:
  StackUser(netrpc::Host& host, bool server) : Protocol(host, server ? "server" : "client"), server_(server) {}

  void demux(netrpc::Session& lower, netrpc::Message message) noexcept override;
  void call_demux(netrpc::Session& lower, netrpc::Message request) noexcept override;
  [[nodiscard]] Errc control(netrpc::control::Request& request) noexcept override;
  [[nodiscard]] std::uint64_t answers() const noexcept { return answers_; }
  /// The bytes of an answer; a datagram is answered with no more than it has. `every`: only each so-manieth datagram is
  /// answered. Inside the monitor.
  void answer_with(std::size_t size, std::uint64_t every = 1) noexcept {
    answer_size_ = size;
    answer_every_ = every;
    arrived_ = 0;
  }

 private:
  const bool server_;
  std::uint64_t answers_ = 0;
  std::size_t answer_size_ = 0;
  std::uint64_t answer_every_ = 1;
  std::uint64_t arrived_ = 0;
};

/// What to open, or to enable with an unknown peer. `port`: the peer's; 0: the protocol's own.
[[nodiscard]] netrpc::ParticipantSet bench_participants(netrpc::HostAddress local, netrpc::HostAddress peer,
                                                        std::uint16_t port = 0);

/// A client's session to the server at `peer`.
class StackClient {
 public:
  /// Opens the session. Not inside the monitor.
  static Result<StackClient> open(StackUser& user, netrpc::Protocol& top, netrpc::Service service,
                                  netrpc::HostAddress peer, std::uint16_t port = 0);
  StackClient(StackClient&&) noexcept = default;
  StackClient& operator=(StackClient&&) = delete;
  ~StackClient();
  /// Sends `size` bytes and waits for the answer. A datagram that is lost is sent again after 100 ms (and counted).
  [[nodiscard]] Errc once(std::size_t size);
  /// Sends a stream: `messages` (a multiple of kAnswered) datagrams of `size` bytes, as far as a window of kWindow
  /// allows, to a server that answers each kAnswered'th; blocks until the last is answered. Errors: push's; timed_out
  /// (nothing was answered for 5 s: through a stack that loses messages).
  [[nodiscard]] Errc stream(std::size_t messages, std::size_t size);
  static constexpr std::uint64_t kAnswered = 64;
  static constexpr std::uint64_t kWindow = 4 * kAnswered;
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  StackClient(StackUser& user, netrpc::SessionRef session, netrpc::Service service)
      : user_(user), session_(std::move(session)), service_(service) {}
  StackUser& user_;
  netrpc::SessionRef session_;
  netrpc::Service service_;
  std::uint64_t lost_ = 0;
};

}  // namespace lrpc::bench
