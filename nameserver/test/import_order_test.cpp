// The order in which a server is asked about imports of its names, and which ones it is not asked about.
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using ImportOrder = WithNameserver;
LRPC_ON_BOTH_BACKENDS(ImportOrder);

TEST_P(ImportOrder, imports_of_one_name_that_are_renewed_do_not_starve_imports_of_another) {
  constexpr int kMany = 64;
  options_.limits.max_imports_per_connection = kMany;
  options_.limits.max_binds_per_server = 4;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("a");
  const auto wanted = server.export_name("b");
  TestPeer greedy(path());
  for (int i = 0; i < kMany; ++i) greedy.import("a", kWaits);
  ASSERT_TRUE(greedy.is_served()) << "all of its imports have been heard";
  TestPeer client(path());
  client.import("b", kWaits);
  ASSERT_TRUE(client.is_served());

  int before = 0;
  for (; before < 3 * kMany; ++before) {
    const auto asked = server.answer_bind(Errc::not_permitted);
    ASSERT_TRUE(asked);
    if (asked->export_id == wanted) break;
    ASSERT_EQ(greedy.next_failure(), Errc::not_permitted);
    greedy.import("a", kWaits);
  }
  EXPECT_EQ(before, kMany) << "those that came before it, and none of those that came later";
}

TEST_P(ImportOrder, a_newcomer_does_not_overtake_imports_of_another_name) {
  options_.limits.max_fds_in_flight_per_connection = 3;  // enough for one BindRequest
  options_.allocator_tick = kNoLimit;                    // its pages are descriptors, too
  START_NAMESERVER();
  TestPeer server(path());
  const auto early = server.export_name("a");
  const auto late = server.export_name("b");
  TestPeer client(path());
  for (int i = 0; i < 2; ++i) client.import("a", kWaits);
  ASSERT_TRUE(client.is_served());
  const auto first = server.next_as<shim::BindRequest>();  // now there is room to ask about the other one
  ASSERT_TRUE(first);
  client.import("b", kWaits);
  const auto second = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->export_id, early);
  server.ask(shim::BindReply{first->binding_id, Errc::not_permitted, {}});
  const auto third = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->export_id, late);
}

TEST_P(ImportOrder, imports_that_came_before_their_name_go_before_younger_ones_of_another_name) {
  options_.limits.max_binds_per_server = 1;
  START_NAMESERVER();
  TestPeer client(path());
  client.import("b", kWaits);
  ASSERT_TRUE(client.is_served());
  TestPeer server(path());
  server.export_name("a");
  for (int i = 0; i < 2; ++i) client.import("a", kWaits);
  const auto first = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(first);
  ASSERT_TRUE(client.is_served()) << "the other one waits for its turn";
  const auto old = server.export_name("b");
  server.ask(shim::BindReply{first->binding_id, Errc::not_permitted, {}});
  for (const bool is_old : {true, false}) {
    const auto asked = server.answer_bind(Errc::not_permitted);
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->export_id == old, is_old);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.next_failure(), Errc::not_permitted);
}

TEST_P(ImportOrder, imports_of_a_name_that_is_withdrawn_wait_for_its_next_server_and_hold_up_no_other_name) {
  options_.limits.max_binds_per_server = 1;
  START_NAMESERVER();
  TestPeer server(path());
  const auto withdrawn = server.export_name("a");
  const auto stays = server.export_name("b");
  TestPeer client(path());
  for (const char* const name : {"a", "a", "b"}) client.import(name, kWaits);
  ASSERT_TRUE(client.is_served());
  const auto first = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(first);
  server.ask(shim::WithdrawRequest{withdrawn});
  ASSERT_TRUE(server.next_as<shim::Withdrawn>());
  server.ask(shim::BindReply{first->binding_id, Errc::not_permitted, {}});
  const auto asked = server.answer_bind(Errc::not_permitted);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->export_id, stays);
  TestPeer next(path());
  next.export_name("a");
  EXPECT_TRUE(next.answer_bind(Errc::not_permitted));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  server.hang_up();
  EXPECT_TRUE(client.is_served());
}

TEST_P(ImportOrder, a_server_is_asked_about_no_more_imports_of_a_client_that_has_gone) {
  options_.limits.max_binds_per_server = 2;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("a");
  TestPeer client(path());
  for (int i = 0; i < 6; ++i) client.import("a");
  ASSERT_TRUE(client.is_served()) << "all of its imports have been heard";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(server.next_as<shim::BindRequest>());
  client.hang_up();
  ASSERT_TRUE(eventually([&] { return shim::hung_up(server.fds.at(2).get()); })) << "its second import has ended";
  EXPECT_TRUE(server.quiet());
}

TEST_P(ImportOrder, an_import_whose_turn_never_came_says_that_its_server_does_not_read) {
  options_.bind_timeout = milliseconds(40);
  options_.limits.max_fds_in_flight_per_connection = 3;  // enough for one BindRequest
  options_.allocator_tick = kNoLimit;                    // its pages are descriptors, too
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("a");
  TestPeer client(path());
  for (const char* const why : {"the server of 'a' did not answer", "the server of 'a' does not read"}) {
    client.import("a");
    EXPECT_EQ(client.next_failure(), Errc::timed_out);
    EXPECT_TRUE(client.text.starts_with(why)) << client.text;
  }
}

}  // namespace
}  // namespace lrpc::nameserver::test
