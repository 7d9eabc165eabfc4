#include "wire_pair.h"

#include "core/interrupt.h"
#include "core/store.h"
#include "lrpc/netrpc/all_kinds.h"

namespace lrpc::bench {

using namespace netrpc;

Wire::Wire() { netrpc::test::join(client, "wire", "10.0.0.1/24", server, "wire", "10.0.0.2/24"); }

Result<BareSocket> Wire::open_server(SocketKind kind, const Pieces& pieces) const {
  Result<BareSocket> opened = Errc::system_error;
  server.run([&] { opened = BareSocket::open(kind, "wire", kServer, kClient, pieces); });
  return opened;
}

Result<BareSocket> Wire::open_client(SocketKind kind, const Pieces& pieces) const {
  Result<BareSocket> opened = Errc::system_error;
  client.run([&] {
    opened = BareSocket::open(kind, "wire", kClient, kServer, pieces);
    if (!opened) return;
    if (Status connected = opened->connect(); !connected) opened = connected.error();
  });
  return opened;
}

Status WirePair::compose(End& end, const netrpc::test::Namespace& where, HostAddress address, const Stack& stack,
                         bool server) {
  if (Status made = store(end.engine, UringEngine::make()); !made) return made;
  HostOptions options;
  options.name = server ? "server" : "client";
  options.address = address;
  end.host = std::make_unique<Host>(options, clock_, *end.engine);
  const ProtocolKinds kinds = all_kinds().add(netuser::user_kind());
  const auto description =
      GraphDescription::parse(std::string(stack.graph) + std::string(server ? stack.at_server : ""), kinds);
  if (!description) return description.error();
  const auto compose_here = [&]() -> Status {
    {
      const Shepherd inside(end.host->monitor());
      auto composed = Graph::compose(*end.host, *description, kinds);
      if (!composed) return composed.error();
      end.graph.emplace(std::move(*composed));
      end.user = std::make_unique<StackUser>(*end.host, server);
      if (server && end.graph->find("user") == nullptr) {
        Status enabled = end.graph->find("top")->open_enable(*end.user, bench_participants(address, {}));
        if (!enabled) return enabled;
      }
    }
    if (Status started = end.engine->start(*end.host, 2); !started) return started;
    if (server) {
      auto* const user = dynamic_cast<netuser::UserObject*>(end.graph->find("user"));
      return user != nullptr ? store(end.process, UserServer::start(*user)) : Status();
    }
    auto trips = StackClient::open(*end.user, *end.graph->find("top"), stack.service, Wire::kServer, stack.port);
    if (!trips) return trips.error();
    trips_.emplace(std::move(*trips));
    // A stream's connection is made by the first message, in the namespace of the thread that pushes it: push one here.
    if (stack.port != 0)
      if (const Errc connected = trips_->once(1); connected != Errc::ok) return connected;
    return {};
  };
  Status done;
  where.run([&] { done = compose_here(); });
  return done;
}

Result<std::unique_ptr<WirePair>> WirePair::create(const Stack& stack, const Seats& seats) {
  std::unique_ptr<WirePair> pair(new WirePair);
  sit(seats.server);  // the engine's threads inherit the affinity
  if (Status done = pair->compose(pair->server_, pair->wire_.server, Wire::kServer, stack, true); !done)
    return done.error();
  sit(seats.client);
  if (Status done = pair->compose(pair->client_, pair->wire_.client, Wire::kClient, stack, false); !done)
    return done.error();
  return pair;
}

void WirePair::answer_with(std::size_t size, std::uint64_t every) {
  const Shepherd inside(server_.host->monitor());
  server_.user->answer_with(size, every);
}

WirePair::~WirePair() { trips_.reset(); }

WirePair::End::~End() {
  if (!host) return;
  process.reset();
  engine->stop();
  const Shepherd inside(host->monitor());
  graph.reset();
}

Result<std::unique_ptr<BarePair>> BarePair::create(SocketKind kind, const Seats& seats, const Pieces& pieces) {
  std::unique_ptr<BarePair> pair(new BarePair);
  auto server = pair->wire_.open_server(kind, pieces);
  if (!server) return server.error();
  auto client = pair->wire_.open_client(kind, pieces);
  if (!client) return client.error();
  if (Status accepted = server->accept(); !accepted) return accepted.error();
  pair->server_.emplace(*std::move(server));
  pair->client_.emplace(*std::move(client));
  pair->echo_ = std::thread([server = &*pair->server_, seat = seats.server] {
    sit(seat);
    server->echo();
  });
  sit(seats.client);
  return pair;
}

BarePair::~BarePair() {
  if (!echo_.joinable()) return;
  client_->stop();
  echo_.join();
}

void on_each_placement(Session& session, Status (*measure)(Session& session, Placement placement)) {
  if (const auto why = netrpc::test::why_no_namespaces()) return session.fail(*why);
  try {
    for (const Placement placement : kPlacements) {
      if (interrupted() || !session.wants(placement) || !session.filter().wants("none", name(placement), "")) continue;
      session.check(measure(session, placement));
    }
  } catch (const std::exception& error) {
    session.fail(error.what());
  }
}

}  // namespace lrpc::bench
