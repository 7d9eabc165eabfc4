// name@group between machines: calls that need one, most or all replies.
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <regex>

#include "group_of_machines.h"
#include "network_path.client.h"

namespace lrpc::netd::test {
namespace {

/// A user without an entry in /etc/passwd.
constexpr uid_t kSomebody = 54323;

class GroupsOfOtherUsers : public GroupOfMachines {
 protected:
  /// Whether kSomebody, who may import from lrpc-netd, sees any bindings (1) or none (0); -1: it could not ask.
  [[nodiscard]] int bindings_that_another_user_sees() const {
    EXPECT_EQ(::chmod(client->file("").c_str(), 0755), 0);
    EXPECT_EQ(::chmod(client->socket().c_str(), 0666), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(kSomebody, kSomebody, kSomebody) != 0 ||
          ::setresuid(kSomebody, kSomebody, kSomebody) != 0)
        ::_exit(255);
      auto network = netpath::NetworkPath::Client::import("lrpc.network", options());
      std::array<std::byte, netpath::NetworkPath::layout::kGroups_bindings.bound> room;
      Buffer bindings(room);
      ::_exit(!network || !network->Groups(0, bindings) ? 255 : bindings.size() == 0 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(GroupOfMachines, gives_one_most_or_all_replies_to_the_same_stub) {
  const std::map<std::string, std::size_t> least{{"anyone", 1}, {"replicas", 2}, {"everyone", 3}};
  for (const auto& [group, answers] : least) {
    auto counter = Counter::Client::import("counter@" + group, options());
    ASSERT_TRUE(counter) << counter.error().message() << logs();
    // The members all run, so all of them are bound soon.
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

TEST_F(GroupsOfOtherUsers, tell_a_user_and_the_administrator_which_members_are_bound_and_why_others_are_not) {
  const std::string state = client->file("state");
  client->netd() = {};
  start_netd(*client, {"--state", state, "--allow-user", std::to_string(kSomebody)});
  kill_member(2);
  auto store = Store::Client::import("store@replicas", options());
  ASSERT_TRUE(store) << store.error().message() << logs();
  const std::string command = std::string(LRPC_COMMAND) + " --nameserver " + client->socket() + " groups";
  const auto lines = [&] {
    // Reduces the table's column padding to single spaces.
    return std::regex_replace(run(command).output, std::regex(" +"), " ");
  };
  const std::string user = " " + std::to_string(::geteuid()) + " ";
  const std::string why = "cannot be reached, or no lrpc-netd runs there\n";
  const std::string two = "BINDING UID MEMBER STATE\nstore@replicas" + user + "10.8.0.1 bound\nstore@replicas" + user +
                          "10.8.0.2 bound\nstore@replicas" + user + "10.8.0.3 ";
  EXPECT_TRUE(eventually([&] {
    const std::string said = lines();
    return said.starts_with(two + "not bound: ") && said.ends_with(why);
  })) << lines()
      << logs();

  ASSERT_EQ(::kill(client->netd().pid(), SIGUSR1), 0);
  EXPECT_TRUE(eventually([&] {
    std::ifstream in(state);
    const std::string said{std::istreambuf_iterator<char>(in), {}};
    return said.find("store@replicas of user" + user.substr(0, user.size() - 1) + ": 2 of 3 members bound\n") !=
               std::string::npos &&
           said.find(": 10.8.0.3 is not bound: ") != std::string::npos && said.find(why) != std::string::npos;
  }));

  if (::geteuid() == 0) {
    EXPECT_EQ(bindings_that_another_user_sees(), 0);
  }
  start_member(2);
  EXPECT_TRUE(eventually([&] { return lines() == two + "bound\n"; })) << lines() << logs();
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
