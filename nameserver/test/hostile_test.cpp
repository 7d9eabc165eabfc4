// Peers that break the rules harm only themselves.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>

#include "length.h"
#include "peers/connection.h"
#include "processor_time.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

/// Each test has a bystander that must be served before and after.
class Hostile : public WithNameserver {};
LRPC_ON_BOTH_BACKENDS(Hostile);

TEST_P(Hostile, garbage_is_answered_and_only_its_sender_is_disconnected) {
  START_NAMESERVER();
  TestPeer bystander(path());
  bystander.export_name("files");
  TestPeer waiting(path());
  waiting.import("other", kWaits);
  for (const std::size_t size : {std::size_t{1}, std::size_t{16}, std::size_t{1000}, shim::kMaxBinderMessage + 100}) {
    TestPeer hostile(path());
    ASSERT_EQ(::send(hostile.fd(), std::string(size, 'g').data(), size, 0), static_cast<ssize_t>(size));
    EXPECT_EQ(hostile.next_failure(), Errc::bad_message);
    EXPECT_FALSE(hostile.text.empty());
    EXPECT_TRUE(hostile.hung_up_on());
  }
  EXPECT_TRUE(bystander.is_served());
  bystander.export_name("other");
  bystander.answer_bind();
  EXPECT_TRUE(waiting.next_as<shim::Bound>());
}

/// Its import cannot be answered, which ends it while it takes over the name of a server that has hung up.
TEST_P(Hostile, a_peer_that_ends_while_it_takes_a_name_over_keeps_nothing_busy) {
  options_.limits.max_binds_per_server = 1;
  HeldUp held(options_);
  START_NAMESERVER();
  TestPeer holder(path());
  holder.export_name("x");
  TestPeer client(path());
  client.import("x", kWaits);
  ASSERT_TRUE(holder.next_as<shim::BindRequest>()) << "it does not answer: its limit is used up";
  TestPeer hostile(path());
  hostile.import("x", 1);
  ASSERT_TRUE(hostile.is_served());
  std::this_thread::sleep_for(milliseconds(5));
  TestPeer other(path());
  held.hold(other);
  ASSERT_EQ(::shutdown(hostile.fd(), SHUT_RD), 0);
  hostile.ask(shim::ExportRequest{"x", kFiles, kClasses, ""});
  holder.hang_up();
  held.let_go();
  ASSERT_TRUE(other.next_as<shim::Exported>());
  EXPECT_TRUE(other.is_served());
  hostile.hang_up();
  EXPECT_TRUE(eventually([] {
    const auto before = testing_lrpc::processor_time(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(milliseconds(100));
    return testing_lrpc::processor_time(CLOCK_PROCESS_CPUTIME_ID) - before < milliseconds(30);
  }));
}

TEST_P(Hostile, the_answer_to_garbage_is_heard_although_more_was_sent) {
  START_NAMESERVER();
  TestPeer hostile(path());
  for (int i = 0; i < 5 && ::send(hostile.fd(), "garbage", 7, MSG_NOSIGNAL) == 7; ++i) continue;
  EXPECT_EQ(hostile.next_failure(), Errc::bad_message);
  EXPECT_TRUE(hostile.hung_up_on());
}

TEST_P(Hostile, another_protocol_version_is_told_both_versions) {
  START_NAMESERVER();
  auto bytes = shim::encode({1, shim::ListRequest{}, {}, {}});
  ASSERT_TRUE(bytes);
  (*bytes)[4] = std::byte{7};
  TestPeer old(path());
  ASSERT_GT(::send(old.fd(), bytes->data(), bytes->size(), 0), 0);
  EXPECT_EQ(old.next_failure(), Errc::bad_message);
  EXPECT_NE(old.text.find("version 7"), std::string::npos) << old.text;
  EXPECT_NE(old.text.find("version 3"), std::string::npos) << old.text;
}

TEST_P(Hostile, messages_that_only_a_nameserver_sends_are_refused) {
  START_NAMESERVER();
  for (int i = 0; i < 3; ++i) {
    TestPeer hostile(path());
    if (i == 0) hostile.ask(shim::Exported{1});
    if (i == 1) hostile.ask(shim::BindRequest{1, 1, {}, {}, shim::Gate::adaptive});
    if (i == 2) hostile.ask(shim::Bound{1, {}, {}, {}});
    EXPECT_EQ(hostile.next_failure(), Errc::bad_message);
    EXPECT_TRUE(hostile.hung_up_on());
  }
}

TEST_P(Hostile, descriptors_that_nobody_asked_for_are_closed_with_their_connection) {
  START_NAMESERVER();
  for (int i = 0; i < 20; ++i) {
    TestPeer hostile(path());
    shim::BinderMessage message{1, shim::ListRequest{}, {}, {}};
    message.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Status sent = shim::send_message(hostile.fd(), message);
    message.fds.clear();
    if (!sent) {  // since Linux 6.16 the nameserver's sockets refuse descriptors
      EXPECT_EQ(sent.code(), Errc::not_permitted);
      continue;
    }
    EXPECT_EQ(hostile.next_failure(), Errc::bad_message);
    EXPECT_TRUE(hostile.hung_up_on());
  }
  EXPECT_TRUE(back_to_idle());
}

TEST_P(Hostile, a_forged_bind_reply_disconnects_the_forger_and_changes_nothing) {
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer client(path());
  server.export_name("files");
  client.import("files");
  const auto asked = server.next_as<shim::BindRequest>();
  ASSERT_TRUE(asked);
  for (const std::uint64_t id : {asked->binding_id, asked->binding_id + 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
    TestPeer forger(path());
    forger.ask(shim::BindReply{id, Errc::not_permitted, "ha"});
    EXPECT_EQ(forger.next_failure(), Errc::bad_message);
    EXPECT_TRUE(forger.hung_up_on());
  }
  EXPECT_TRUE(client.quiet());
  server.ask(shim::BindReply{asked->binding_id, Errc::ok, ""});
  EXPECT_TRUE(client.next_as<shim::Bound>());
  // A second answer to the same request is too late; an id that was never issued is a forgery.
  server.ask(shim::BindReply{asked->binding_id, Errc::ok, ""});
  EXPECT_TRUE(server.is_served());
  server.ask(shim::BindReply{asked->binding_id + 1, Errc::ok, ""});
  EXPECT_EQ(server.next_failure(), Errc::bad_message);
}

TEST(BindingIds, of_late_answers_are_known_when_the_count_has_begun_anew) {
  Connection server;
  server.serial = 7;
  server.bindings_issued = (1ULL << 32) - 2;
  const BindingId last = server.next_binding();
  EXPECT_EQ(last, BindingId{7} << 32 | 0xffff'ffff);
  EXPECT_FALSE(server.has_issued(BindingId{7} << 32)) << "nobody was asked about it so far";
  const BindingId zero = server.next_binding();
  const BindingId first = server.next_binding();
  EXPECT_EQ(zero, BindingId{7} << 32);
  EXPECT_EQ(first, BindingId{7} << 32 | 1);
  for (const BindingId id : {last, zero, first}) EXPECT_TRUE(server.has_issued(id)) << id;
  EXPECT_FALSE(server.has_issued(BindingId{8} << 32 | 1)) << "another connection's";
}

TEST_P(Hostile, a_peer_that_never_reads_does_not_hold_up_the_others) {
  START_NAMESERVER();
  TestPeer server(path());
  for (int i = 0; i < 100; ++i) server.export_name("name" + std::string(200, 'x') + std::to_string(i));
  TestPeer deaf(path());
  // The answers fill its socket. Then the nameserver stops reading from it, so that sending fails, too.
  const shim::BinderMessage request{1, shim::ListRequest{}, {}, {}};
  int refused = 0;
  while (refused < 50) {
    if (shim::send_message(deaf.fd(), request, kDoNotWait)) continue;
    ++refused;
    std::this_thread::sleep_for(milliseconds(1));
  }
  TestPeer bystander(path());
  EXPECT_TRUE(bystander.is_served());
}

TEST_P(Hostile, a_client_that_never_reads_does_not_collect_descriptors) {
  options_.limits.max_fds_in_flight_per_connection = 9;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  TestPeer deaf(path());
  std::vector<UniqueFd> bells;
  for (int i = 0; i < 5; ++i) {
    deaf.import("files");
    ASSERT_TRUE(server.answer_bind());
    ASSERT_EQ(server.fds.size(), 3U);
    bells.push_back(std::move(server.fds[2]));
  }
  EXPECT_TRUE(server.is_served());
  for (std::size_t i = 0; i < bells.size(); ++i)
    EXPECT_EQ(shim::hung_up(bells[i].get()), i >= 3) << "a server lets go at once of bindings that nobody gets: " << i;
  int bound = 0;
  int failed = 0;
  for (int i = 0; i < 5; ++i) {
    auto message = deaf.next();
    ASSERT_TRUE(message);
    if (std::holds_alternative<shim::Bound>(message->body)) ++bound;
    if (const auto* one = std::get_if<shim::Failed>(&message->body)) {
      EXPECT_EQ(one->code, Errc::limit_reached);
      ++failed;
    }
  }
  EXPECT_EQ(bound, 3);
  EXPECT_EQ(failed, 2);
  deaf.import("files");  // it reads again now
  ASSERT_TRUE(server.answer_bind());
  EXPECT_TRUE(deaf.next_as<shim::Bound>());
}

TEST_P(Hostile, a_server_that_never_reads_costs_its_clients_a_bounded_time_and_not_its_name) {
  options_.limits.max_fds_in_flight_per_connection = 6;
  options_.bind_timeout = milliseconds(200);
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  EXPECT_TRUE(server.is_served());  // its page has been received
  TestPeer client(path());
  for (int i = 0; i < 3; ++i) client.import("files");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.next_failure(), Errc::timed_out);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(server.answer_bind());  // too late
  EXPECT_TRUE(eventually([&] {  // repeated: each answer is too late if this process stood still
    client.import("files");
    EXPECT_TRUE(server.answer_bind());
    const auto answer = client.next();
    return answer && std::holds_alternative<shim::Bound>(answer->body);
  }));
}

TEST_P(Hostile, imports_stay_in_line_while_a_server_has_as_much_to_read_as_fits) {
  options_.limits.max_fds_in_flight_per_connection = 6;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  EXPECT_TRUE(server.is_served());  // its page has been received
  TestPeer client(path());
  constexpr int kImports = 20;
  for (int i = 0; i < kImports; ++i) client.import("files");
  for (int i = 0; i < kImports; ++i) {
    ASSERT_TRUE(server.answer_bind()) << i;
    ASSERT_TRUE(client.next_as<shim::Bound>()) << i;
  }
}

TEST_P(Hostile, a_server_that_owes_no_answer_is_asked_again_once_it_has_read) {
  options_.limits.max_fds_in_flight_per_connection = 3;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  EXPECT_TRUE(server.is_served());  // its page has been received
  TestPeer gone(path());
  gone.import("files");
  EXPECT_TRUE(gone.is_served());
  TestPeer client(path());
  gone.hang_up();  // ends its import, so that no answer is due any more
  EXPECT_TRUE(client.is_served());
  client.import("files");
  EXPECT_TRUE(client.quiet());
  EXPECT_TRUE(server.answer_bind()) << "the first one, too late";
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Hostile, a_slow_reader_is_disconnected_when_its_queue_is_full) {
  options_.limits.max_queued_messages = 4;
  constexpr std::size_t kImports = 3000;  // their failures fill any socket
  options_.limits.max_imports_per_connection = kImports;
  options_.limits.user.imports = kImports;
  START_NAMESERVER();
  TestPeer server(path());
  TestPeer deaf(path());
  for (std::size_t i = 0; i < kImports; ++i) deaf.import("late", shim::ImportRequest::kForever);
  EXPECT_TRUE(deaf.is_served());                   // so all of them wait
  server.export_name("late", {"Clock", 1, 0, 9});  // ends them: another interface
  EXPECT_TRUE(eventually([&] {                     // their failures exceed the queue
    pollfd entry{deaf.fd(), 0, 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
  }));
  EXPECT_TRUE(server.is_served());
}

TEST_P(Hostile, imports_under_way_are_limited_per_connection) {
  options_.limits.max_imports_per_connection = 4;
  START_NAMESERVER();
  TestPeer client(path());
  for (int i = 0; i < 4; ++i) client.import("never", shim::ImportRequest::kForever);
  client.import("never", shim::ImportRequest::kForever);
  EXPECT_EQ(client.next_failure(), Errc::limit_reached);
  EXPECT_TRUE(client.is_served());
}

TEST_P(Hostile, connections_are_limited_and_freed_when_they_close) {
  options_.limits.max_connections = 4;
  START_NAMESERVER();
  {
    std::vector<std::unique_ptr<TestPeer>> peers;
    for (int i = 0; i < 4; ++i) {
      peers.push_back(std::make_unique<TestPeer>(path()));
      ASSERT_TRUE(peers.back()->is_served());
    }
    TestPeer surplus(path());
    EXPECT_EQ(surplus.next_failure(), Errc::limit_reached);
    EXPECT_TRUE(surplus.hung_up_on());
  }
  EXPECT_TRUE(back_to_idle());
  TestPeer again(path());
  EXPECT_TRUE(again.is_served());
}

TEST_P(Hostile, without_free_descriptors_the_nameserver_waits_and_recovers) {
  START_NAMESERVER();
  TestPeer bystander(path());
  ASSERT_TRUE(bystander.is_served());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  TestPeer late(path());
  ASSERT_TRUE(late.is_served());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const UniqueFd probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(probe.get()) + 1;
  // Every descriptor number below the limit is used, so the next accept(2) finds none.
  std::vector<UniqueFd> fill;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fill.emplace_back(fd);
  late.hang_up();
  // Uses up the two numbers that `late` had (here and at the nameserver), and connects a socket that was made before.
  const std::size_t all = fill.size() + 2;
  ASSERT_TRUE(eventually([&] {
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fill.emplace_back(fd);
    return fill.size() >= all;
  }));
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  address->sa_family = AF_UNIX;
  path().copy(address->sa_data, sizeof storage - sizeof(sa_family_t) - 1);
  ASSERT_EQ(::connect(socket.get(), address, static_cast<socklen_t>(sizeof(sa_family_t) + path().size() + 1)), 0);
  EXPECT_TRUE(bystander.is_served());
  EXPECT_TRUE(shim::send_message(socket.get(), {1, shim::ListRequest{}, {}, {}}));
  auto nothing = shim::receive_message(socket.get(), milliseconds(50));
  EXPECT_TRUE(nothing && !*nothing);
  fill.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  auto answer = shim::receive_message(socket.get(), kPatience);
  EXPECT_TRUE(answer && *answer);
}

TEST_P(Hostile, mutated_conversations_leave_nothing_behind) {
  options_.limits.max_queued_messages = 8;
  START_NAMESERVER();
  TestPeer bystander(path());
  bystander.export_name("bystander");
  EXPECT_TRUE(bystander.is_served());  // its page has been received
  const bool is_long = testing_lrpc::long_tests();
  const std::uint64_t seed = testing_lrpc::test_seed();
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto running = open_fds();
  for (int round = 0; round < (is_long ? 800 : 100); ++round) {
    if (round == 400) random.seed(4);
    TestPeer one(path());
    for (int i = 0; i < 6; ++i) {
      shim::BinderBody body;
      switch (random() % 6) {
        case 0: body = shim::ExportRequest{"n" + std::to_string(random() % 3), kFiles, kClasses, "t"}; break;
        case 1:
          body = shim::ImportRequest{
              "n" + std::to_string(random() % 3), kFiles, static_cast<std::uint32_t>(random() % 50), {}};
          break;
        case 2: body = shim::WithdrawRequest{random() % 64}; break;
        case 3: body = shim::DescribeRequest{"n1"}; break;
        case 4: body = shim::BindReply{(random() % 400) << 32 | random() % 4, Errc::ok, ""}; break;
        default: body = shim::ListRequest{}; break;
      }
      auto bytes = shim::encode({static_cast<std::uint32_t>(i), std::move(body), {}, {}});
      ASSERT_TRUE(bytes);
      if (random() % 3 == 0) (*bytes)[random() % bytes->size()] ^= static_cast<std::byte>(1U << random() % 8);
      if (::send(one.fd(), bytes->data(), bytes->size(), MSG_NOSIGNAL) < 0) break;
    }
    if (random() % 2 == 0) continue;  // hangs up without reading the answers
    while (true) {
      auto got = shim::receive_message(one.fd(), milliseconds(1));
      if (!got || !*got) break;
    }
  }
  EXPECT_TRUE(bystander.is_served());
  EXPECT_TRUE(eventually([&] { return open_fds() == running; }));
}

}  // namespace
}  // namespace lrpc::nameserver::test
