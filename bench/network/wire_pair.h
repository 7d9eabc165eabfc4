// Two hosts in network namespaces of their own, joined by a veth pair, with a stack on real sockets or with bare
// sockets.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "bare_sockets.h"
#include "core/placement.h"
#include "layers/stack_client.h"
#include "layers/stacks.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/test_support/namespaces.h"
#include "session.h"
#include "user_server.h"

namespace lrpc::bench {

/// Two namespaces joined by an interface named `wire` in each, with the addresses 10.0.0.1 and 10.0.0.2.
struct Wire {
  Wire();
  netrpc::test::Namespace client;
  netrpc::test::Namespace server;
  static constexpr netrpc::HostAddress kClient{0x0a000001};
  static constexpr netrpc::HostAddress kServer{0x0a000002};
  /// Open an end of a ping-pong each. Call open_server() first, because open_client() also connects the client's end.
  [[nodiscard]] Result<BareSocket> open_server(SocketKind kind, const Pieces& pieces = {}) const;
  [[nodiscard]] Result<BareSocket> open_client(SocketKind kind, const Pieces& pieces = {}) const;
};

/// One stack at both ends of a wire of its own, so that stacks with the same protocol numbers do not receive each
/// other's packets.
class WirePair {
 public:
  static Result<std::unique_ptr<WirePair>> create(const Stack& stack, const Seats& seats);
  WirePair(const WirePair&) = delete;
  ~WirePair();
  [[nodiscard]] StackClient& trips() noexcept { return *trips_; }
  /// How the server answers later messages: StackUser::answer_with().
  void answer_with(std::size_t size, std::uint64_t every = 1);

 private:
  struct End {
    std::unique_ptr<netrpc::UringEngine> engine;
    std::unique_ptr<netrpc::Host> host;
    std::optional<netrpc::Graph> graph;
    std::unique_ptr<StackUser> user;
    std::unique_ptr<UserServer> process;  ///< At a server that is a process: takes the place of `user`.
    ~End();
  };
  WirePair() = default;
  Status compose(End& end, const netrpc::test::Namespace& where, netrpc::HostAddress address, const Stack& stack,
                 bool server);

  Wire wire_;
  netrpc::MonotonicClock clock_;
  End server_;
  End client_;
  std::optional<StackClient> trips_;
};

/// As WirePair, with bare sockets and an echoing thread.
class BarePair {
 public:
  static Result<std::unique_ptr<BarePair>> create(SocketKind kind, const Seats& seats, const Pieces& pieces = {});
  BarePair(const BarePair&) = delete;
  ~BarePair();
  [[nodiscard]] bool once(std::size_t size) noexcept { return client_->once(size); }

 private:
  BarePair() = default;
  Wire wire_;
  std::optional<BareSocket> client_;
  std::optional<BareSocket> server_;
  std::thread echo_;
};

/// Measures at each placement that exists here and that the filter wants, until the bench is interrupted. The session
/// fails if namespaces cannot be made, and if `measure` returns an error or throws.
void on_each_placement(Session& session, Status (*measure)(Session& session, Placement placement));

}  // namespace lrpc::bench
