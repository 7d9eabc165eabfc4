// The cost of the framework of composite protocols: Table 2 of Bhatti and Schlichting, "A System for Constructing
// Configurable High-Level Protocols" (SIGCOMM 1995), on the simulated wire.
#include "netrpc/composite/composite.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "alternate.h"
#include "core/interrupt.h"
#include "netrpc/sim/devices.h"
#include "netrpc/sim/world.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using namespace netrpc;
using namespace std::chrono_literals;
namespace cp = netrpc::composite;

constexpr std::size_t kSizes[] = {1, 1024, 2048, 4096, 8192};
constexpr const char* kPaperUdp[] = {"1.57", "4.18", "7.39", "12.65", "23.77"};
constexpr const char* kPaperComposite[] = {"2.2", "4.84", "7.89", "12.93", "23.78"};
constexpr const char* kPaperThreads[] = {"5.48", "8.19", "11.38", "16.96", "27.63"};
constexpr std::uint64_t kEvents = 19;  ///< Per round trip, as in the paper.

Message one_byte(Host& host) { return Message::make(host.pool(), 1); }

/// The user: counts the messages that arrive. In the row without a composite protocol, the server's user also
/// acknowledges.
class User final : public Protocol {
 public:
  User(Host& host, bool acknowledges) : Protocol(host, "user"), acknowledges_(acknowledges) {}
  void demux(netrpc::Session& lower, Message message) noexcept override {
    ++received;
    message.clear();
    if (acknowledges_) (void)lower.push(one_byte(host()));
  }
  std::uint64_t received = 0;

 private:
  const bool acknowledges_;
};

/// The server's micro-protocol (Figure 5): acknowledges each message that is passed to the user.
class Acknowledge final : public cp::MicroProtocol {
 public:
  explicit Acknowledge(cp::MicroParts& parts) : parts_(parts) {
    parts_.handle(cp::kMessagePoppedFromCp, [this](const cp::ItemRef& item) {
      parts_.bag().insert(parts_.bag().new_item(item->session(), cp::Direction::down, one_byte(parts_.host())));
    });
  }

 private:
  cp::MicroParts parts_;
};
cp::MicroKind acknowledge_kind() {
  cp::MicroKind kind;
  kind.name = "ACKNOWLEDGE";
  kind.imports = {cp::kMessagePoppedFromCp.name};
  kind.make = cp::make_micro<Acknowledge>;
  return kind;
}

/// Empty handlers in place of the paper's, one for each event that has no other handler.
class Null final : public cp::MicroProtocol {
 public:
  Null(cp::MicroParts& parts, bool acknowledged) {
    for (const auto& event :
         {cp::kMessageInsertedIntoBag, cp::kMessageDeletedFromBag, cp::kMessageReadyToBeSent, cp::kMessagePushedFromCp})
      parts.handle(event, [](const cp::ItemRef&) {});
    if (!acknowledged) parts.handle(cp::kMessagePoppedFromCp, [](const cp::ItemRef&) {});
  }
};
cp::MicroKind null_micro_kind(bool acknowledged) {
  cp::MicroKind kind;
  kind.name = "NULL";
  kind.imports = {cp::kMessageInsertedIntoBag.name, cp::kMessageDeletedFromBag.name, cp::kMessageReadyToBeSent.name,
                  cp::kMessagePushedFromCp.name, cp::kMessagePoppedFromCp.name};
  kind.make = [acknowledged](cp::MicroParts& parts) -> Result<std::unique_ptr<cp::MicroProtocol>> {
    return std::unique_ptr<cp::MicroProtocol>(std::make_unique<Null>(parts, acknowledged));
  };
  return kind;
}

enum class Layer : std::uint8_t { none, procedures, threads };
constexpr std::size_t kThreads = 4;  ///< More than the depth of nested raises in this bench.

/// Two hosts on a wire that takes no virtual time.
class Trips {
 public:
  static Result<std::unique_ptr<Trips>> make(Layer layer) {
    std::unique_ptr<Trips> made(new Trips);
    for (SimHost* const host : made->hosts_) {
      const bool serves = host == made->hosts_[1];
      const Shepherd inside(host->monitor());
      auto udp = sim_udp_kind("UDP").make({host->host(), "udp", {}, {}});
      if (!udp) return udp.error();
      Protocol* top = made->keep(std::move(udp).value());
      if (layer != Layer::none) {
        std::vector<cp::Part> parts{{null_micro_kind(serves)}};
        if (serves) parts.push_back({acknowledge_kind()});
        auto framework = cp::Framework::make(host->host(), "composite", *top, std::move(parts),
                                             layer == Layer::threads ? kThreads : 0);
        if (!framework) return framework.error();
        made->events_.push_back(&(*framework)->events());
        top = made->keep(std::move(framework).value());
      }
      auto user = std::make_unique<User>(host->host(), serves && layer == Layer::none);
      if (!serves) made->user_ = user.get();
      Protocol& high = *made->keep(std::move(user));
      ParticipantSet participants{protocol_numbers::kFirstOfTests, {}, {}};
      if (auto enabled = top->open_enable(high, participants); !enabled) return enabled.error();
      if (serves) continue;
      participants.remote.host = made->hosts_[1]->address();
      auto session = top->open(high, participants);
      if (!session) return session.error();
      made->session_ = *session;
    }
    return made;
  }
  Trips(const Trips&) = delete;
  Trips& operator=(const Trips&) = delete;
  ~Trips() {
    const Shepherd inside(hosts_[0]->monitor());
    session_ = {};
    while (!protocols_.empty()) protocols_.pop_back();
  }

  bool once(std::size_t size) {
    const std::uint64_t before = user_->received;
    {
      const Shepherd inside(hosts_[0]->monitor());
      Message message = Message::make(hosts_[0]->pool(), size);
      if (!message.allocated() || session_->push(std::move(message)) != Errc::ok) return false;
    }
    return world_.run_until([&] { return user_->received != before; }, 1s);
  }
  [[nodiscard]] std::uint64_t activations() const {
    std::uint64_t count = 0;
    for (const cp::Events* one : events_) count += one->activations();
    return count;
  }

 private:
  Trips() : hosts_{&world_.add_host(), &world_.add_host()} {}
  Protocol* keep(std::unique_ptr<Protocol> protocol) {
    protocols_.push_back(std::move(protocol));
    return protocols_.back().get();
  }

  SimWorld world_;
  SimHost* hosts_[2];
  std::vector<std::unique_ptr<Protocol>> protocols_;
  std::vector<cp::Events*> events_;
  User* user_ = nullptr;
  SessionRef session_;
};

Status measure(Session& session) {
  std::unique_ptr<Trips> trips[3];
  for (const Layer layer : {Layer::none, Layer::procedures, Layer::threads}) {
    auto made = Trips::make(layer);
    if (!made) return made.error();
    Trips& one = *(trips[static_cast<std::size_t>(layer)] = *std::move(made));
    if (!one.once(1)) return Error{Errc::call_failed, "no acknowledgement"};
    if (layer != Layer::none && one.activations() != kEvents)
      return Error{Errc::call_failed, fmt::format("{} handlers ran, not {}", one.activations(), kEvents)};
  }
  std::vector<Subject> subjects;
  for (const std::size_t size : kSizes)
    for (const auto& one : trips)
      subjects.push_back({fmt::format("{}", size), [&one, size] { return one->once(size); }});
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 100 : 1000, 1ms);
  if (interrupted()) return {};
  const Table table{{"bytes", -6},     {"UDP, ns", 9},         {"+CP-P, ns", 10}, {"a handler", 10}, {"+CP-T, ns", 10},
                    {"a handler", 10}, {"paper: UDP, ms", 15}, {"+CP-P, ms", 10}, {"+CP-T, ms", 10}};
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const std::size_t at = 3 * i;
    const auto each = [&](std::size_t layer) {
      return number(measured.difference(at + layer, at) / static_cast<double>(kEvents));
    };
    table.print({subjects[at].name, number(measured.median_of(at)), number(measured.median_of(at + 1)), each(1),
                 number(measured.median_of(at + 2)), each(2), kPaperUdp[i], kPaperComposite[i], kPaperThreads[i]});
    for (std::size_t layer = 1; layer <= 2; ++layer) {
      const char* const name = layer == 1 ? "CP-P" : "CP-T";
      session.emit_json({.bench = "composite",
                         .test = fmt::format("{} {}", name, kSizes[i]),
                         .figures = measured.figures(at + layer, at)});
    }
  }
  return {};
}

}  // namespace

void composite(Session& session) {
  print_intro("Composite protocols: a round trip through the null composite protocol, ns",
              "A message and its acknowledgement between two hosts on a simulated wire: by UDP alone, and with a "
              "composite protocol above it at both ends, whose server's side acknowledges (the paper's Figure 5): 19 "
              "events, 19 handlers, called (CP-P) or in threads (CP-T). a handler: all that it adds, divided by 19 "
              "(bars: 100 and 10,000; the paper: 33,700 and 206,000).");
  session.check(measure(session));
}

}  // namespace lrpc::bench
