// What PSYNC adds to FRAGMENT, on which it is built (RPC in the x-Kernel §3.2), on the simulated wire.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "alternate.h"
#include "core/interrupt.h"
#include "lrpc/netrpc/all_kinds.h"
#include "session.h"
#include "sim_pair.h"

namespace lrpc::bench {
namespace {

using namespace netrpc;
using namespace std::chrono_literals;

constexpr HostAddress kGroup{0xef000001};  // 239.0.0.1

struct Carrier {
  const char* name;
  const char* graph;
  bool to_group;  ///< One push reaches all; otherwise one push for each listener.
};
constexpr std::array<Carrier, 3> kCarriers{
    {{"UDP, to each", "udp = UDP; top = NULL over udp;", false},
     {"FRAGMENT over UDP, to each", "udp = UDP; top = FRAGMENT over udp;", false},
     {"PSYNC over FRAGMENT over UDP", "udp = UDP; fragment = FRAGMENT over udp; top = PSYNC over fragment;", true}}};

class Listener final : public Protocol {
 public:
  explicit Listener(Host& host) : Protocol(host, "listener") {}
  void demux(netrpc::Session& /*lower*/, Message /*message*/) noexcept override { ++received; }
  Errc control(control::Request& request) noexcept override {
    if (control::answered(request, control::AdvertisedMaximum{16384})) return Errc::ok;
    return Protocol::control(request);
  }
  std::uint64_t received = 0;
};

/// One host that sends, and others that listen.
class Room {
 public:
  static Result<std::unique_ptr<Room>> make(const Carrier& carrier, std::size_t listeners) {
    std::unique_ptr<Room> made(new Room);
    ProtocolKinds kinds = layer_kinds();
    kinds.add(sim_udp_kind("UDP"));
    auto graph = GraphDescription::parse(carrier.graph, kinds);
    if (!graph) return graph.error();
    std::vector<HostAddress> members;
    for (std::size_t i = 0; i <= listeners; ++i) {
      made->machines_.push_back(std::make_unique<Machine>(made->world_.add_host()));
      members.push_back(made->machines_.back()->host.address());
    }
    for (const auto& machine : made->machines_) {
      if (Status done = machine->compose(*graph, kinds); !done) return done.error();
      const bool speaks = machine == made->machines_.front();
      if (!carrier.to_group && !speaks) {
        if (Status enabled = machine->serve(); !enabled) return enabled.error();
        continue;
      }
      const Shepherd inside(machine->host.monitor());
      if (auto set = machine->host.host().groups().set(kGroup, members); !set) return set.error();
      for (const HostAddress peer : carrier.to_group ? std::vector{kGroup} : members) {
        if (peer == machine->host.address()) continue;
        auto session = machine->top().open(machine->user, bench_participants(machine->host.address(), peer));
        if (!session) return session.error();
        machine->sessions.push_back(*session);
      }
    }
    return made;
  }
  /// Sends a message, and runs the simulation until all listeners have it.
  bool once(std::size_t size) {
    Machine& speaker = *machines_.front();
    {
      const Shepherd inside(speaker.host.monitor());
      for (const SessionRef& session : speaker.sessions) {
        Message message = Message::make(speaker.host.pool(), size);
        Errc pushed = Errc::limit_reached;
        if (message.allocated()) pushed = session->push(std::move(message));
        if (pushed != Errc::ok) return false;
      }
    }
    ++said_;
    return world_.run_until(
        [this] {
          for (std::size_t i = 1; i < machines_.size(); ++i)
            if (machines_[i]->user.received != said_) return false;
          return true;
        },
        1s);
  }
  /// Runs the simulation while PSYNC exchanges the statuses by which all learn that all have the messages.
  void rest() { world_.run_for(100ms); }

 private:
  using Machine = SimMachine<Listener>;
  Room() = default;
  SimWorld world_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::uint64_t said_ = 0;
};

constexpr std::size_t kMostOfUdp = 1400;  ///< Above this, IP fragments what UDP sends, and the row no longer shows what
                                          ///< FRAGMENT is built on.
constexpr std::size_t kWindow = 32;       ///< Messages between two calls of rest(): fewer than PSYNC keeps.

Status measure(Session& session) {
  struct Of {
    const Carrier& carrier;
    std::size_t listeners;
    std::size_t size;
    std::unique_ptr<Room> room;
  };
  std::vector<Of> all;
  std::vector<Subject> subjects;
  for (const auto& [listeners, size] : {std::pair{1, 4}, {2, 4}, {3, 4}, {5, 4}, {3, 8192}}) {
    for (const Carrier& carrier : kCarriers) {
      const auto bytes = static_cast<std::size_t>(size);
      if (&carrier == &kCarriers[0] && bytes > kMostOfUdp) continue;
      auto made = Room::make(carrier, static_cast<std::size_t>(listeners));
      if (!made) return made.error();
      Room& room = **made;
      subjects.push_back({fmt::format("{}, {} listeners, {} bytes", carrier.name, listeners, bytes),
                          [&room, bytes] {
                            for (std::size_t i = 0; i < kWindow; ++i)
                              if (!room.once(bytes)) return false;
                            room.rest();
                            return true;
                          },
                          kWindow});
      all.push_back({carrier, static_cast<std::size_t>(listeners), bytes, *std::move(made)});
    }
  }
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 20 : 200, 2ms);
  if (interrupted()) return {};
  const Table table{{"carrier", -30}, {"listeners", 9}, {"bytes", 6}, {"ns", 9}, {"each, ns", 9}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (measured.blocks[i].empty()) return Error{Errc::call_failed, subjects[i].name + ": a message was lost"};
    const double each = measured.median_of(i) / static_cast<double>(all[i].listeners);
    table.print({all[i].carrier.name, fmt::format("{}", all[i].listeners), fmt::format("{}", all[i].size),
                 number(measured.median_of(i)), number(each)});
    session.emit_json({.bench = "conversation", .test = subjects[i].name, .figures = measured.figures(i)});
  }
  return {};
}

}  // namespace

void conversation(Session& session) {
  print_intro(
      "PSYNC: a message from one to all others of a conversation, ns",
      "Until all have it, on a simulated wire, in one thread: the time is the work of all hosts together. PSYNC's "
      "statuses, by which all learn that all have it, are among it: one for each pair of hosts after 32 messages.");
  session.check(measure(session));
}

}  // namespace lrpc::bench
