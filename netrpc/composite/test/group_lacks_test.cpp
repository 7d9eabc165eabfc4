// A group whose members this host cannot open, because it lacks descriptors or memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "netrpc/composite/group_session.h"
#include "netrpc/composite/test/several.h"
#include "transparent_layer.h"

namespace lrpc::netrpc::composite {
namespace {

/// Opens no session, to any host or to one, as on a host that lacks something.
class Lacking final : public TransparentProtocol {
 public:
  Lacking(Host& host, Protocol& below) : TransparentProtocol(host, "lacking", below) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (away.known() && participants.remote.host == away) return Errc::host_unreachable;
    if (lacks == Lacks::nothing || (only.known() && participants.remote.host != only))
      return TransparentProtocol::open(high, participants);
    if (lacks == Lacks::memory) throw std::bad_alloc();
    return Error{Errc::limit_reached, "no descriptor is left"};
  }
  enum class Lacks : std::uint8_t { nothing, descriptors, memory };
  Lacks lacks = Lacks::nothing;
  HostAddress only;  ///< Not known: any host.
  HostAddress away;  ///< To this host there is no way.
};

std::vector<Part> calls_to_all() { return {part(grpc_kind()), part(sync_kind()), part(all_accept_kind())}; }

/// A group of two, over Lacking at the client.
struct LackingClient {
  std::vector<Lacking*> clients;  ///< One.
  Several group{2, calls_to_all, {}, 0, [this](SimHost& host) -> Protocol& {
                  auto& made = host.add<Lacking>(host.ip());
                  if (host.index() == 0) clients.push_back(&made);
                  return made;
                }};
  [[nodiscard]] Lacking& below() const { return *clients.front(); }
  [[nodiscard]] Result<SessionRef> open() {
    const Shepherd inside(group.net[0].monitor());
    return group.layers[0]->open(*group.client, Several::to_group());
  }
};

TEST(GroupRpc, members_are_not_said_to_be_unreachable_if_this_host_lacks_something) {
  LackingClient client;
  client.below().lacks = Lacking::Lacks::descriptors;
  const auto refused = client.open();
  EXPECT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("no descriptor is left"), std::string::npos) << refused.error().text;
  client.below().lacks = Lacking::Lacks::memory;
  EXPECT_EQ(client.open().code(), Errc::limit_reached);
}

TEST(GroupRpc, a_member_that_could_not_be_asked_has_failed_for_the_true_reason) {
  LackingClient client;
  client.below().lacks = Lacking::Lacks::descriptors;
  client.below().only = client.group.net.address(2);
  auto opened = client.open();
  ASSERT_TRUE(opened) << opened.error().message();
  {
    const Shepherd inside(client.group.net[0].monitor());
    client.group.session = *std::move(opened);
  }
  GroupOutcome one;
  client.group.call("hello", one);
  client.group.run();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.2", "10.0.0.2: hello"},
                                                          {"10.0.0.3", failure(Errc::limit_reached)}}));
}

TEST(GroupRpc, what_this_host_lacks_is_the_reason_whether_a_member_before_or_behind_is_unreachable) {
  for (const std::size_t lacking : {1U, 2U}) {
    LackingClient client;
    client.below().lacks = Lacking::Lacks::descriptors;
    client.below().only = client.group.net.address(lacking);
    client.below().away = client.group.net.address(3 - lacking);
    EXPECT_EQ(client.open().code(), Errc::limit_reached);
    {
      const Shepherd inside(client.group.net[0].monitor());
      // open() refuses a group without a session to any member.
      client.group.session =
          SessionRef(new GroupSession(*client.group.layers[0], *client.group.client, Several::to_group()));
      control::MaximumMessage size;
      EXPECT_EQ(control::ask(*client.group.session, size), Errc::limit_reached) << lacking;
    }
    GroupOutcome one;
    client.group.call("hello", one);
    client.group.run();
    EXPECT_EQ(one.outcome, Errc::limit_reached) << lacking;
  }
}

}  // namespace
}  // namespace lrpc::netrpc::composite
