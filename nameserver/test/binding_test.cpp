// Imports and bindings, from the client's and the server's side.
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lrpc/detail/shim/call/region.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using Binding = WithNameserver;
LRPC_ON_BOTH_BACKENDS(Binding);

bool readable(int fd, milliseconds wait = {}) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(wait.count())) == 1;
}
bool readable_in_time(int fd) { return readable(fd, kPatience); }

TEST_P(Binding, an_import_introduces_client_and_server) {
  START_NAMESERVER();
  TestPeer server(path());
  const auto export_id = server.export_name("files");
  TestPeer client(path());
  const auto request = client.import("files");
  const auto asked = server.answer_bind();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->export_id, export_id);
  EXPECT_EQ(asked->client.pid, ::getpid());
  EXPECT_EQ(asked->client.uid, ::getuid());
  EXPECT_EQ(asked->gate, shim::Gate::handoff);
  ASSERT_EQ(server.fds.size(), 3U);

  const auto bound = client.next_as<shim::Bound>();
  ASSERT_TRUE(bound);
  EXPECT_EQ(client.last_answer, request);
  EXPECT_EQ(bound->binding_id, asked->binding_id);
  EXPECT_EQ(bound->nonce, asked->nonce);
  EXPECT_NE(bound->nonce, shim::Nonce{});
  EXPECT_EQ(bound->server.pid, ::getpid());
  EXPECT_EQ(bound->classes, kClasses);
  ASSERT_EQ(client.fds.size(), 3U);

  // Both got the same region, and both libraries accept it.
  auto layout = shim::RegionLayout::of(kClasses);
  ASSERT_TRUE(layout);
  auto servers = shim::Region::map(std::move(server.fds[0]), *layout);
  auto clients = shim::Region::map(std::move(client.fds[0]), *layout);
  ASSERT_TRUE(servers && clients) << servers.error().message() << clients.error().message();
  servers->astack(6).image[10] = std::byte{42};
  EXPECT_EQ(clients->astack(6).image[10], std::byte{42});

  // The pidfds are of living processes, and the bells are the two ends of one pair.
  EXPECT_FALSE(readable(server.fds[1].get()));
  EXPECT_FALSE(readable(client.fds[1].get()));
  EXPECT_EQ(::send(client.fds[2].get(), "r", 1, 0), 1);
  EXPECT_TRUE(readable_in_time(server.fds[2].get()));
}

TEST_P(Binding, the_nameserver_keeps_nothing_of_a_binding) {
  START_NAMESERVER();
  for (int i = 0; i < 10; ++i) {
    TestPeer server(path());
    TestPeer client(path());
    server.export_name("files");
    for (int j = 0; j < 10; ++j) {
      client.import("files");
      server.answer_bind(j % 2 == 0 ? Errc::ok : Errc::not_permitted);
      EXPECT_TRUE(client.next());
    }
  }
  EXPECT_TRUE(back_to_idle());
}

TEST_P(Binding, the_end_of_the_nameserver_harms_no_binding) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  server.answer_bind();
  ASSERT_TRUE(client.next_as<shim::Bound>());
  nameserver_.reset();
  EXPECT_FALSE(readable(server.fds[2].get())) << "the bell has hung up";
  EXPECT_EQ(::send(client.fds[2].get(), "r", 1, 0), 1);
  EXPECT_TRUE(readable_in_time(server.fds[2].get()));
  EXPECT_EQ(::send(server.fds[2].get(), "r", 1, MSG_NOSIGNAL), -1) << "a server has nothing to say there";
  EXPECT_TRUE(client.hung_up_on());
}

TEST_P(Binding, an_import_waits_until_the_name_appears) {
  START_NAMESERVER();
  TestPeer client(path());
  client.import("files", shim::ImportRequest::kForever);
  EXPECT_TRUE(client.quiet());
  TestPeer server(path());
  server.export_name("files");
  server.answer_bind();
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, waiting_imports_are_served_in_order_of_arrival) {
  START_NAMESERVER();
  std::vector<std::unique_ptr<TestPeer>> clients;
  TestPeer one(path());
  TestPeer other(path());
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 3; ++i) {
    order.push_back(one.import("files", kWaits));
    ASSERT_TRUE(one.quiet(milliseconds(5)));
  }
  TestPeer server(path());
  server.export_name("files");
  std::vector<std::uint32_t> served;
  for (int i = 0; i < 3; ++i) {
    server.answer_bind();
    ASSERT_TRUE(one.next_as<shim::Bound>());
    served.push_back(one.last_answer);
  }
  EXPECT_EQ(served, order);
}

TEST_P(Binding, an_import_times_out_when_nobody_exports_the_name) {
  START_NAMESERVER();
  TestPeer client(path());
  client.import("files");
  EXPECT_EQ(client.next_failure(), Errc::name_unknown);
  const auto begin = std::chrono::steady_clock::now();
  client.import("files", 40);
  EXPECT_EQ(client.next_failure(), Errc::name_unknown);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
  EXPECT_NE(client.text.find("40 ms"), std::string::npos) << client.text;
}

TEST_P(Binding, mismatches_have_their_own_codes_and_do_not_reach_the_server) {
  START_NAMESERVER();
  TestPeer client(path());
  client.import("files", kWaits, {"Clock", 1, 0, 1});  // also refused if the client was waiting
  TestPeer server(path());
  server.export_name("files", {"Files", 1, 1, 7});
  EXPECT_EQ(client.next_failure(), Errc::interface_mismatch);
  client.import("files", 0, {"Files", 2, 0, 7});
  EXPECT_EQ(client.next_failure(), Errc::version_mismatch);
  client.import("files", 0, {"Files", 1, 2, 7});
  EXPECT_EQ(client.next_failure(), Errc::version_mismatch);
  client.import("files", 0, {"Files", 1, 1, 8});
  EXPECT_EQ(client.next_failure(), Errc::hash_mismatch);
  EXPECT_TRUE(server.quiet());
  client.import("files", 0, {"Files", 1, 0, 7});
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, a_refusal_reaches_the_client_with_the_clerks_words_made_printable) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  server.answer_bind(Errc::not_permitted, "not \x1b[31myou\n" + std::string(900, 'x'));
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_NE(client.text.find("not ?[31myou?xxx"), std::string::npos) << client.text;
  EXPECT_LE(client.text.size(), shim::kMaxReasonLength);
  client.import("files");
  server.answer_bind(Errc::name_taken);  // other codes from a clerk count as refusals, too
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  client.import("files");
  server.answer_bind(Errc::limit_reached, "full");
  EXPECT_EQ(client.next_failure(), Errc::limit_reached);
}

TEST_P(Binding, a_refused_servers_bell_hangs_up) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  server.answer_bind(Errc::not_permitted);
  client.next_failure();
  ASSERT_EQ(server.fds.size(), 3U);
  EXPECT_TRUE(readable_in_time(server.fds[2].get()));
}

TEST_P(Binding, a_clerk_that_does_not_answer_costs_its_client_a_bounded_time) {
  options_.bind_timeout = milliseconds(40);
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  EXPECT_EQ(client.next_failure(), Errc::timed_out);
  // The late answer has no effect.
  const auto asked = server.answer_bind();
  ASSERT_TRUE(asked);
  EXPECT_TRUE(server.is_served());
  EXPECT_TRUE(client.is_served());
}

TEST_P(Binding, the_server_dies_during_the_bind_and_the_import_waits_for_the_next_one) {
  START_NAMESERVER();
  TestPeer client(path());
  client.import("files", kWaits);
  {
    TestPeer server(path());
    server.export_name("files");
    ASSERT_TRUE(server.next_as<shim::BindRequest>());
  }
  EXPECT_TRUE(client.quiet());
  TestPeer server(path());
  server.export_name("files");
  server.answer_bind();
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, the_server_dies_during_the_bind_of_an_import_that_does_not_wait) {
  START_NAMESERVER();
  TestPeer client(path());
  TestPeer server(path());
  server.export_name("files");
  client.import("files");
  ASSERT_TRUE(server.next_as<shim::BindRequest>());
  server.hang_up();
  EXPECT_EQ(client.next_failure(), Errc::peer_gone);
}

TEST_P(Binding, the_client_dies_during_the_bind_and_the_server_goes_on) {
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  std::optional<shim::BindRequest> asked;
  {
    TestPeer client(path());
    client.import("files");
    asked = server.next_as<shim::BindRequest>();
  }
  ASSERT_TRUE(asked);
  EXPECT_TRUE(readable_in_time(server.fds[2].get())) << "the bell has to hang up";
  server.ask(shim::BindReply{asked->binding_id, Errc::ok, ""});
  EXPECT_TRUE(server.is_served());
  TestPeer client(path());
  client.import("files");
  server.answer_bind();
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, a_withdrawal_lets_a_clerk_that_was_asked_answer) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  const auto id = server.export_name("files");
  client.import("files");
  const auto asked = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(asked);
  server.ask(shim::WithdrawRequest{id});
  EXPECT_TRUE(server.next_as<shim::Withdrawn>());
  server.ask(shim::BindReply{asked->binding_id, Errc::ok, ""});
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, an_import_that_waits_goes_on_waiting_when_its_clerk_has_just_withdrawn_the_name) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  const auto id = server.export_name("files");
  const auto request = client.import("files", kWaits);
  const auto asked = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(asked);
  // The clerk has already withdrawn the name, and says so before the nameserver knows.
  const shim::BindReply gone{asked->binding_id, Errc::name_unknown, "the name has been withdrawn"};
  server.ask(gone);
  server.ask(shim::WithdrawRequest{id});
  auto told = server.next();
  for (; told && !std::holds_alternative<shim::Withdrawn>(told->body); told = server.next()) {
    const auto* const again = std::get_if<shim::BindRequest>(&told->body);  // sent before the nameserver knew
    ASSERT_NE(again, nullptr);
    server.ask(shim::BindReply{again->binding_id, gone.code, gone.text});
  }
  ASSERT_TRUE(told);
  EXPECT_TRUE(client.quiet());
  TestPeer next(path());
  next.export_name("files");
  next.answer_bind();
  EXPECT_TRUE(client.next_as<shim::Bound>());
  EXPECT_EQ(client.last_answer, request);
}

TEST_P(Binding, an_import_that_does_not_wait_finds_a_name_unknown_that_its_clerk_has_just_withdrawn) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  const auto asked = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(asked);
  server.ask(shim::BindReply{asked->binding_id, Errc::name_unknown, "the name has been withdrawn"});
  EXPECT_EQ(client.next_failure(), Errc::name_unknown);
}

TEST_P(Binding, a_clerk_that_says_for_ever_that_it_has_withdrawn_the_name_is_asked_later_each_time) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files", kWaits);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) {
    const auto asked = server.next_as<shim::BindRequest>();
    ASSERT_TRUE(asked);
    server.ask(shim::BindReply{asked->binding_id, Errc::name_unknown, "the name has been withdrawn"});
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(10 + 20 + 40 + 80 + 160));
}

TEST_P(Binding, two_servers_and_several_clients_are_kept_apart) {
  START_NAMESERVER();
  TestPeer files(path());
  TestPeer clock(path());
  const auto files_id = files.export_name("files");
  const auto clock_id = clock.export_name("clock", {"Clock", 1, 0, 9});
  std::vector<std::unique_ptr<TestPeer>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<TestPeer>(path()));
    if (i % 2 == 0) clients.back()->import("files");
    if (i % 2 == 1) clients.back()->import("clock", 0, {"Clock", 1, 0, 9});
  }
  std::vector<shim::BindRequest> asked;
  for (int i = 0; i < 3; ++i) {
    for (TestPeer* server : {&clock, &files}) {
      auto request = server->answer_bind();
      ASSERT_TRUE(request);
      EXPECT_EQ(request->export_id, server == &files ? files_id : clock_id);
      asked.push_back(*request);
    }
  }
  for (auto& client : clients) {
    const auto bound = client->next_as<shim::Bound>();
    ASSERT_TRUE(bound);
    const auto same = [&](const auto& one) { return one.binding_id == bound->binding_id && one.nonce == bound->nonce; };
    EXPECT_EQ(std::count_if(asked.begin(), asked.end(), same), 1);
  }
}

TEST_P(Binding, imports_beyond_what_a_server_is_asked_at_once_wait_their_turn) {
  options_.limits.max_binds_per_server = 2;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  TestPeer client(path());
  for (int i = 0; i < 6; ++i) client.import("files");
  const auto first = server.next_as<shim::BindRequest>();
  const auto second = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(server.quiet());
  server.ask(shim::BindReply{first->binding_id, Errc::ok, ""});
  server.ask(shim::BindReply{second->binding_id, Errc::ok, ""});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(server.answer_bind());
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Binding, a_name_on_another_host_is_for_the_network_domain) {
  START_NAMESERVER();
  TestPeer client(path());
  client.import("files@elsewhere", kWaits);
  EXPECT_EQ(client.next_failure(), Errc::remote_unavailable);
  EXPECT_NE(client.text.find("network domain"), std::string::npos) << client.text;
}

TEST_P(Binding, one_process_can_import_what_it_exports) {
  START_NAMESERVER();
  TestPeer both(path());
  both.export_name("files");
  both.import("files");
  ASSERT_TRUE(both.answer_bind());
  EXPECT_TRUE(both.next_as<shim::Bound>());
}

TEST_P(Binding, a_killed_server_process_during_the_bind_fails_the_import) {
  START_NAMESERVER();
  const pid_t child = ::fork();
  if (child == 0) {
    TestPeer server(path());
    server.export_name("files");
    auto asked = server.next();
    ::raise(SIGKILL);
  }
  TestPeer client(path());
  EXPECT_TRUE(eventually([&] {
    client.ask(shim::ListRequest{});
    return !client.next_as<shim::Listed>()->names.empty();
  }));
  client.import("files");
  EXPECT_EQ(client.next_failure(), Errc::peer_gone);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace lrpc::nameserver::test
