// One end of a stack, and round trips through it: a request of some bytes, and an empty reply or one of some bytes.
#pragma once

#include <cstddef>

#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::bench {

/// The user of a stack. A server answers each message, or every n-th, with as many bytes as answer_with() says (at
/// first none). A client counts the answers.
class StackUser final : public netrpc::Protocol {
 public:
  StackUser(netrpc::Host& host, bool server) : Protocol(host, server ? "server" : "client"), server_(server) {}

  void demux(netrpc::Session& lower, netrpc::Message message) noexcept override;
  void call_demux(netrpc::Session& lower, netrpc::Message request) noexcept override;
  [[nodiscard]] Errc control(netrpc::control::Request& request) noexcept override;
  [[nodiscard]] std::uint64_t answers() const noexcept { return answers_; }
  /// Sets the size of an answer, in bytes; an answer to a datagram is no longer than the datagram. Only every
  /// `every`-th datagram is answered. Call it inside the monitor.
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

/// The participants to open, or, with an unknown peer, to enable. `port`: the peer's; 0: the protocol's default.
[[nodiscard]] netrpc::ParticipantSet bench_participants(netrpc::HostAddress local, netrpc::HostAddress peer,
                                                        std::uint16_t port = 0);

/// A client's session with the server at `peer`.
class StackClient {
 public:
  /// Opens the session. Do not call it inside the monitor.
  static Result<StackClient> open(StackUser& user, netrpc::Protocol& top, netrpc::Service service,
                                  netrpc::HostAddress peer, std::uint16_t port = 0);
  StackClient(StackClient&&) noexcept = default;
  StackClient& operator=(StackClient&&) = delete;
  ~StackClient();
  /// Sends `size` bytes and waits for the answer. A datagram without an answer after 100 ms counts as lost and is sent
  /// again, four times at most. Errors: timed_out, limit_reached, those of push and of the call.
  [[nodiscard]] Errc once(std::size_t size);
  /// Sends a stream: `messages` (a multiple of kAnswered) datagrams of `size` bytes, at most kWindow of them
  /// unanswered, to a server that answers every kAnswered-th. Blocks until the last is answered. Errors: push's;
  /// limit_reached; timed_out (no answer for 5 s: the stack has lost a message).
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
