// Which members of a group are bound, and why others are not, as users and administrators see it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "group_fixture.h"
#include "lrpc/detail/shim/system/little_endian.h"
#include "network_path.client.h"

namespace testing_netpath {
namespace {

/// What lrpc-netd reports to this user about the user's bindings to groups: one line per member that is not bound.
std::map<std::string, std::vector<std::string>> unbound(const RemoteBroker& broker) {
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& one : broker.group_bindings()) {
    auto& of_one = all[one.name + "@" + one.group];
    EXPECT_EQ(one.user, geteuid());
    for (const auto& member : one.members)
      if (!member.bound) of_one.push_back(lrpc::GroupMember{member.host}.str() + ": " + member.why);
  }
  return all;
}

TEST_F(Groups, say_which_members_are_not_bound_and_why) {
  using Lines = std::vector<std::string>;
  EXPECT_TRUE(unbound(here_->broker()).empty());
  members_[0].server.reset();
  members_[2].host->stop_broker();
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  const auto said = [&] { return unbound(here_->broker()).at("files@replicas"); };
  EXPECT_EQ(said(), (Lines{name(0) + ": name unknown", name(2) + ": cannot be reached, or no lrpc-netd runs there"}));
  serve(0);
  EXPECT_TRUE(eventually([&] { return said().size() == 1; }));
  members_[2].host->start_broker(there_options());
  EXPECT_TRUE(eventually([&] { return said().empty(); }));
  members_[1].host->stop_broker();
  EXPECT_TRUE(eventually([&] { return said() == Lines{name(1) + ": cannot be reached, or no lrpc-netd runs there"}; }));
  client = Errc::name_unknown;
  EXPECT_TRUE(eventually([&] { return unbound(here_->broker()).empty(); }));
}

/// The reason goes into logs and to terminals.
TEST_F(Groups, what_another_host_gives_as_its_reason_is_made_printable_and_short) {
  members_[1].server.reset();
  lrpc::Server choosy({.nameserver = members_[1].host->socket()});
  lrpc::ExportOptions options;
  options.authorise_remote = [](const lrpc::shim::Principal&) -> lrpc::Status {
    return lrpc::Error{Errc::not_permitted, "go\naway\x1b[2J" + std::string(300, '!')};
  };
  ASSERT_TRUE(Replica::export_to(choosy, "files", members_[1].service, options));
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  const auto bindings = here_->broker().group_bindings();
  ASSERT_EQ(bindings.size(), 1U);
  const std::string& why = bindings.front().members[1].why;
  EXPECT_EQ(why.size(), 200U);
  EXPECT_TRUE(std::ranges::all_of(why, [](char c) { return c >= ' ' && c <= '~'; })) << why;
  EXPECT_NE(why.find("away"), std::string::npos) << why;
}

/// One answer lists as many as fit, the next answer the following ones.
TEST_F(Groups, are_listed_to_their_user_in_parts) {
  namespace wire = lrpc::netpath::NetworkPath;
  std::vector<HostAddress> all;
  for (std::size_t i = 0; i < 64; ++i) all.push_back(address(i));  // only three of them exist
  here_->wire().set_members(all);
  std::vector<Replica::Client> clients;
  for (int i = 0; i < 8; ++i) {
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    clients.push_back(*std::move(client));
  }
  auto network = wire::Client::import("lrpc.network", {.nameserver = here_->socket()});
  ASSERT_TRUE(network);
  std::vector<std::byte> room(wire::layout::kGroups_bindings.bound);
  std::size_t parts = 0;
  std::size_t bindings = 0;
  for (std::uint64_t after = 0;; ++parts) {
    lrpc::Buffer answer(room);
    ASSERT_TRUE(network->Groups(after, answer));
    if (answer.size() == 0) break;
    lrpc::shim::ByteReader reader(answer.contents());
    while (reader.left() != 0) {
      const auto number = reader.number<std::uint64_t>();
      ASSERT_GT(number, after);
      after = number;
      EXPECT_EQ(reader.number<std::uint32_t>(), geteuid());
      const auto text = [&] {
        const auto bytes = reader.take(reader.number<std::uint8_t>());
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      };
      EXPECT_EQ(text(), "replicas");
      EXPECT_EQ(text(), "files");
      ASSERT_EQ(reader.number<std::uint8_t>(), 64U);
      for (std::size_t i = 0; i < 64; ++i) {
        EXPECT_EQ(reader.number<std::uint32_t>(), address(i));
        EXPECT_EQ(reader.number<std::uint8_t>(), i < kMembers ? 1U : 0U);
        EXPECT_EQ(text().empty(), i < kMembers);
      }
      ++bindings;
    }
    EXPECT_TRUE(reader.good());
  }
  EXPECT_EQ(bindings, clients.size());
  EXPECT_GT(parts, 1U);
}

}  // namespace
}  // namespace testing_netpath
