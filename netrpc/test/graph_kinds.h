// Kinds of protocols with the names and shapes of the real ones that do nothing: for tests of the graph itself.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::test {

/// Nothing arrives, and no thread waits.
class IdleEngine final : public Engine {
 public:
  bool wait(Host& /*host*/, const std::function<bool()>& done, Time /*deadline*/) override { return done(); }
  void wake(Host& /*host*/) noexcept override {}
};

/// A clock that the test advances.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  Time now_{std::chrono::seconds(1)};
};

/// Logs its own destruction, and whether that happened inside the monitor.
class LoggedProtocol final : public Protocol {
 public:
  LoggedProtocol(Host& host, std::string name, std::vector<std::string>& log)
      : Protocol(host, std::move(name)), log_(log) {}
  ~LoggedProtocol() override { log_.push_back(name() + (host().monitor().held() ? " inside" : " outside")); }

 private:
  std::vector<std::string>& log_;
};

/// ETH, IP, VIPADDR, VIPSIZE, VIP, FRAGMENT, CHANNEL, SELECT and a transparent TRACE. `log`: the names of destroyed
/// ones.
inline ProtocolKinds logged_kinds(std::vector<std::string>& log) {
  const auto make = [&log](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    if (parts.options.text("interface") == "none") return Error{Errc::system_error, "no such interface"};
    return std::unique_ptr<Protocol>(std::make_unique<LoggedProtocol>(parts.host, parts.name, log));
  };
  const ProtocolKind::Below datagram{"the protocol for messages", Service::datagram};
  const ProtocolKind::Below calls{"the protocol for calls", Service::transaction};
  ProtocolKinds kinds;
  kinds.add({.name = "ETH",
             .summary = "the device",
             .options = {{"interface", OptionType::text, "the network interface", true},
                         {"types", OptionType::number, "the first ethertype; 0xa700", false}},
             .make = make});
  kinds.add({.name = "IP", .summary = "raw IP", .make = make});
  kinds.add({.name = "VIPADDR", .summary = "chooses", .below = {datagram, datagram}, .make = make});
  kinds.add({.name = "VIPSIZE",
             .summary = "chooses",
             .below = {{"the protocol for small messages"}, {"the protocol for large messages"}},
             .make = make});
  kinds.add({.name = "VIP", .summary = "chooses", .below = {datagram}, .last_below_repeats = true, .make = make});
  kinds.add({.name = "FRAGMENT",
             .summary = "cuts",
             .below = {datagram},
             .options = {{"linger", OptionType::duration, "how long copies are kept; 100ms", false}},
             .make = make});
  kinds.add({.name = "CHANNEL", .summary = "asks", .gives = Service::transaction, .below = {datagram}, .make = make});
  kinds.add({.name = "SELECT",
             .summary = "names procedures",
             .gives = Service::transaction,
             .below = {calls},
             .options = {{"channels", OptionType::number, "how many; 8", false}},
             .make = make});
  kinds.add({.name = "TRACE",
             .summary = "shows",
             .transparent = true,
             .below = {datagram},
             .options = {{"share", OptionType::rate, "of the messages; 1", false}},
             .make = make});
  return kinds;
}

/// RPC in the x-Kernel, Figure 3 b.
inline constexpr std::string_view kFigure3b = R"(# SELECT-CHANNEL-VIPsize over FRAGMENT and VIPaddr
eth      = ETH(interface = "veth0", types = 0xa700);
ip       = IP;
vipaddr  = VIPADDR over eth, ip;
fragment = FRAGMENT(linger = 250ms) over vipaddr;
vipsize  = VIPSIZE over vipaddr, fragment;
channel  = CHANNEL over vipsize;
select   = SELECT(channels = 8) over channel;
)";

/// The same kinds, without a log.
inline ProtocolKinds unlogged_kinds() {
  static std::vector<std::string> unused;
  return logged_kinds(unused);
}

inline Result<GraphDescription> parse(std::string_view text) { return GraphDescription::parse(text, unlogged_kinds()); }

}  // namespace lrpc::netrpc::test
