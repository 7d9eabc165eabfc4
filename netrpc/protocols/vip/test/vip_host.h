// A simulated host with VIP, over devices that count messages and fail on demand.
#pragma once

#include <gtest/gtest.h>

#include "netrpc/protocols/vip/vip.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {

/// A layer between VIP and a device: counts messages, and refuses to send or to resolve on demand.
class Gauge final : public Protocol {
 public:
  Gauge(Host& host, Protocol& lower) : Protocol(host, "gauge"), lower_(lower) {}

  class GaugeSession final : public Session {
   public:
    GaugeSession(Gauge& gauge, Protocol& high, SessionRef lower)
        : Session(gauge, high, lower->participants()), gauge_(gauge), lower_(std::move(lower)) {
      lower_->above = this;
    }
    ~GaugeSession() override { lower_->above = nullptr; }
    Errc push(Message message) noexcept override {
      if (gauge_.broken) return Errc::host_unreachable;
      ++gauge_.pushed;
      return lower_->push(std::move(message));
    }
    Errc control(control::Request& request) noexcept override { return gauge_.control(request); }

   private:
    friend class Gauge;
    Gauge& gauge_;
    SessionRef lower_;
  };

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    ++opened;
    ParticipantSet whole = participants;
    if (whole.remote.host == alias) whole.remote.ethernet = machine_of_alias;
    auto lower = lower_.open(*this, whole);
    if (!lower) return lower.error();
    if ((*lower)->above != nullptr) return SessionRef((*lower)->above);
    return SessionRef(new GaugeSession(*this, high, *lower));
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    ++enabled;
    high_ = &high;
    return lower_.open_enable(*this, participants);
  }
  void open_disable(Protocol& /*high*/, const ParticipantSet& participants) noexcept override {
    --enabled;
    lower_.open_disable(*this, participants);
  }
  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    ParticipantSet shown = participants;
    if (hide_hosts) shown.remote.host = {};
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory a simulation ends
    auto* const session = new GaugeSession(*this, *high_, SessionRef(&lower));
    const SessionRef keep(session);
    const Errc outcome = high_->open_done(*session, shown);
    if (outcome == Errc::ok) kept.push_back(keep);
    return outcome;
  }
  void demux(Session& lower, Message message) noexcept override {
    ++popped;
    high_->demux(*lower.above, std::move(message));
  }
  Errc control(control::Request& request) noexcept override {
    if (auto* const resolve = std::get_if<control::Resolve>(&request)) {
      ++resolved;
      if (!resolves) return Errc::host_unreachable;
      if (resolve->host == alias) {
        resolve->ethernet = machine_of_alias;
        return Errc::ok;
      }
    }
    if (hide_hosts && (std::holds_alternative<control::ResolveReverse>(request) ||
                       std::holds_alternative<control::PeerHost>(request)))
      return Errc::host_unreachable;
    return lower_.control(request);
  }

  int pushed = 0;
  int popped = 0;
  int opened = 0;
  int enabled = 0;
  int resolved = 0;
  bool broken = false;
  bool resolves = true;
  bool hide_hosts = false;
  HostAddress alias{1};  ///< Another address of the machine with the Ethernet address machine_of_alias.
  EthernetAddress machine_of_alias;
  std::vector<SessionRef> kept;

 private:
  Protocol& lower_;
  Protocol* high_ = nullptr;
};

/// A host with VIP over gauged devices.
struct VipHost {
  explicit VipHost(SimHost& on, const VipOptions& options = {})
      : machine(on), ethernet(on.add<Gauge>(on.ethernet())), ip(on.add<Gauge>(on.ip())) {
    auto made = make_vip(machine.host(), "vip", ethernet, ip, nullptr, options);
    vip = made->get();
    machine.own(std::shared_ptr<Protocol>(std::move(*made)));
    sink = &machine.add<SinkProtocol>();
  }
  SimHost& machine;
  Gauge& ethernet;
  Gauge& ip;
  Protocol* vip = nullptr;
  SinkProtocol* sink = nullptr;
};

}  // namespace lrpc::netrpc
