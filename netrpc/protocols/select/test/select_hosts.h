// SELECT-CHANNEL-ETH on simulated hosts.
#pragma once

#include <gtest/gtest.h>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {

struct SelectHosts : SimHosts {
  using Make = std::function<std::unique_ptr<Protocol>(Host& host, Protocol& channel, std::size_t index)>;

  /// `make` makes the protocol above CHANNEL on each host.
  SelectHosts(std::size_t count, const Make& make, std::size_t buffer_limit = SimHostOptions().buffer_limit)
      : SimHosts(count, 1, {}, buffer_limit) {
    for (std::size_t i = 0; i < count; ++i) {
      SimHost& machine = world.host(i);
      channels.push_back(make_channel(machine.host(), "channel", machine.ethernet()));
      selects.push_back(make(machine.host(), *channels.back(), i));
      servers.push_back(std::make_unique<SlowServer>(machine.host()));
    }
  }
  explicit SelectHosts(std::size_t count, ChannelPoolOptions options = {})
      : SelectHosts(count, [options](Host& host, Protocol& channel, std::size_t /*index*/) {
          return make_select(host, "select", channel, options);
        }) {}
  ~SelectHosts() {
    sessions.clear();
    for (auto& server : servers) server->pending.clear();
    selects.clear();
    channels.clear();
  }
  SelectHosts(const SelectHosts&) = delete;
  SelectHosts& operator=(const SelectHosts&) = delete;

  void serve(std::size_t at, std::uint16_t command) {
    const Shepherd inside(world.host(at).monitor());
    ParticipantSet participants;
    participants.local.command = command;
    EXPECT_TRUE(selects[at]->open_enable(*servers[at], participants));
  }
  Session& open(std::size_t from, std::size_t to, std::uint16_t command) {
    const Shepherd inside(world.host(from).monitor());
    ParticipantSet participants;
    participants.remote.host = address(to);
    participants.remote.command = command;
    Result<SessionRef> session = selects[from]->open(*servers[from], participants);
    EXPECT_TRUE(session) << session.error().message();
    sessions.push_back(*session);
    return *sessions.back();
  }
  void call(std::size_t from, Session& session, TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    const Shepherd inside(world.host(from).monitor());
    session.call(message(from, text), call, timeout);
  }
  void cancel(std::size_t from, Session& session, TestCall& call) {
    const Shepherd inside(world.host(from).monitor());
    session.cancel(call);
  }
  [[nodiscard]] static control::Statistics statistics(Protocol& protocol) {
    return test::asked<control::Statistics>(protocol);
  }

  std::vector<std::unique_ptr<Protocol>> channels;
  std::vector<std::unique_ptr<Protocol>> selects;
  std::vector<std::unique_ptr<SlowServer>> servers;
  std::vector<SessionRef> sessions;
};

}  // namespace lrpc::netrpc
