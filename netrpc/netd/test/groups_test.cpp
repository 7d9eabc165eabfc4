// name@group between machines: one, most or all replies.
#include <algorithm>

#include "group_of_machines.h"

namespace lrpc::netd::test {
namespace {

TEST_F(GroupOfMachines, gives_one_most_or_all_replies_to_the_same_stub) {
  const std::map<std::string, std::size_t> least{{"anyone", 1}, {"replicas", 2}, {"everyone", 3}};
  for (const auto& [group, answers] : least) {
    auto counter = Counter::Client::import("counter@" + group, options());
    ASSERT_TRUE(counter) << counter.error().message() << logs();
    // All are bound soon, as they are there.
    const auto good = [&, &needed = answers] {
      const auto replies = counter->all().Merge({});
      if (!replies) return false;
      EXPECT_EQ(replies->members, kMembers);
      return replies->size() >= needed &&
             std::ranges::all_of(*replies, [](const auto& one) { return bool(one.result); });
    };
    EXPECT_TRUE(eventually(good)) << group << logs();
    EXPECT_TRUE(counter->Merge({}));
  }
}

TEST_F(GroupOfMachines, a_member_cannot_call_its_own_group) {
  const auto own = Store::Client::import("store@replicas", {.nameserver = members[0].machine->socket()});
  EXPECT_EQ(own.code(), Errc::invalid_argument);
  EXPECT_NE(own.error().text.find("includes this machine"), std::string::npos) << own.error().text;
}

TEST_F(GroupOfMachines, graphs_in_which_groups_cannot_be_called_are_refused) {
  const auto refused = [&](const std::string& graph) {
    std::ofstream(client->file("graph")) << graph;
    std::string output;
    client->in([&] {
      output = run(std::string(LRPC_NETD) + " --nameserver " + client->socket() + " --graph " + client->file("graph"))
                   .output;
    });
    return output;
  };
  client->netd() = {};
  const std::string calls =
      "udp = UDP(address = \"10.8.0.9\"); channel = CHANNEL over udp; select = SELECT over channel;";
  EXPECT_NE(refused(calls + "g = GROUP(members = [10.8.0.1]) over select;").find("calls one host at a time"),
            std::string::npos);
  const auto group_over = [&](const std::string& inside, const std::string& below) {
    return refused(calls + "auth = AUTH(keys = \"" + client->file("keys") +
                   "\") over udp; c = COMPOSITE { GRPC; SYNC; " + inside + " } over " + below +
                   "; s = SELECT(number = 240) over c; g = GROUP(members = [10.8.0.1]) over s;");
  };
  EXPECT_NE(group_over("ONE_ACCEPT; BOUNDED;", "udp").find("UNIQUE in a composition"), std::string::npos);
  EXPECT_NE(group_over("ONE_ACCEPT; NUMBER; UNIQUE; ACK;", "udp").find("for ever"), std::string::npos);
  EXPECT_NE(group_over("ONE_ACCEPT; NUMBER; UNIQUE; BOUNDED;", "auth").find("the same AUTH"), std::string::npos);
}

}  // namespace
}  // namespace lrpc::netd::test
