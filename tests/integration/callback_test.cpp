// Callbacks: a server calls its clients over their shared binding, within their calls and outside of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>

#include "chatter_service.h"
#include "closed_aside.h"
#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

/// A server and a client in this process, bound privately.
class Callbacks : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  ~Callbacks() override {
    listener_.let_go = true;
    own_.reset();  // its E-stacks may have called through client_
    server_.reset();
  }
  void start(const lrpc::ImportOptions& options) {
    auto bound = another(options);
    ASSERT_TRUE(bound) << bound.error().message();
    client_ = std::make_unique<Chatter::Client>(*std::move(bound));
    listener_.server = client_.get();
  }
  lrpc::Result<Chatter::Client> another(const lrpc::ImportOptions& options = {}) {
    auto ends = shim::make_socket_pair();
    if (!ends) return ends.error();
    if (auto served = Chatter::serve_over(*server_, std::move(ends->first), service_); !served) return served.error();
    return Chatter::Client::import_over(std::move(ends->second), options);
  }
  lrpc::Status listen() { return client_->serve_callbacks(*own_, listener_); }
  lrpc::Status serve_on(lrpc::UniqueFd socket) {
    return own_->serve_over(std::move(socket), Chatter::Callback::kPdl,
                            Chatter::Callback::Entry_<ChatterListener>::kStubs_, &listener_);
  }
  lrpc::Status offer(int fd) {
    return shim::offer_on_bell(lrpc::detail::StubAccess::object(client_->binding()).bell(), shim::BellMessage::callback,
                               fd);
  }
  /// Waits until the server has received and closed what was offered: it holds only a limited amount of one user's at a
  /// time.
  void wait_until_offers_are_closed() {
    const int bell = lrpc::detail::StubAccess::object(client_->binding()).bell();
    EXPECT_TRUE(eventually([&] {
      int unread = 0;
      return ::ioctl(bell, SIOCOUTQ, &unread) == 0 && unread == 0;
    }));
    wait_for_what_is_closed_aside();
  }
  /// The error with which the server's callback ended, within these time limits.
  Errc ask(std::string_view question = "?", std::uint32_t timeout_ms = kPatienceMs,
           std::uint32_t call_timeout_ms = kPatienceMs) {
    const auto asked = client_->Ask(question, timeout_ms, call_timeout_ms);
    return asked ? static_cast<Errc>(asked->code) : asked.code();
  }

  ChatterService service_;
  ChatterListener listener_;
  std::unique_ptr<lrpc::Server> server_ = std::make_unique<lrpc::Server>();
  std::unique_ptr<lrpc::Server> own_ = std::make_unique<lrpc::Server>();  ///< The client's own server, for callbacks.
  std::unique_ptr<Chatter::Client> client_;
};

TEST_F(Callbacks, a_server_calls_its_client_back_while_it_serves_it) {
  ASSERT_TRUE(listen());
  EXPECT_EQ(client_->Sum(100).value(), 9'900U);
  EXPECT_EQ(listener_.doubled, 100U);
  EXPECT_EQ(own_->statistics().bindings, 1U);
  EXPECT_EQ(client_->Sum(10).value(), 90U);
  EXPECT_EQ(own_->statistics().bindings, 1U) << "bound once";
}

TEST_F(Callbacks, carry_records_strings_and_declared_errors) {
  ASSERT_TRUE(listen());
  const std::string question(1'900, 'x');
  const auto asked = client_->Ask(question, kPatienceMs, kPatienceMs);
  ASSERT_TRUE(asked) << asked.error().message();
  EXPECT_EQ(asked->answer, (Chatter::Note{.number = 1'900, .mood = Chatter::Mood::Bad, .text = "here"}));
  const auto refused = client_->Ask("refuse", 0, 0);
  ASSERT_NE(refused.raised<Chatter::Refused>(), nullptr);
  EXPECT_EQ(refused.raised<Chatter::Refused>()->code, 7U);
  EXPECT_EQ(ask("throw"), Errc::exception_escaped);
  EXPECT_EQ(ask(), Errc::ok);
}

TEST_F(Callbacks, without_an_offer_the_error_says_what_is_missing) {
  EXPECT_EQ(client_->Sum(1).code(), Errc::not_supported);
  EXPECT_NE(service_.last_error().message().find("serve_callbacks"), std::string::npos);
  EXPECT_TRUE(client_->Ping());
  ASSERT_TRUE(listen());
  EXPECT_EQ(client_->Sum(2).value(), 2U);
}

TEST_F(Callbacks, from_many_threads_at_once_bind_once_and_lose_nothing) {
  ASSERT_TRUE(listen());
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> sum{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) sum += client_->Sum(5).value();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 8U * 20 * 20);
  EXPECT_EQ(listener_.doubled, 8U * 20 * 5);
  EXPECT_EQ(own_->statistics().bindings, 1U);
}

TEST_F(Callbacks, reach_a_client_outside_of_any_call) {
  ASSERT_TRUE(listen());
  ASSERT_TRUE(client_->Subscribe());
  EXPECT_EQ(service_.publish(42), (Chatter::PublishResults{.told = 1, .lost = 0, .last_error = 0}));
  EXPECT_TRUE(eventually([&] { return listener_.last_hint == 42; })) << "nobody waits for a one-way call";
  EXPECT_EQ(listener_.last_news, 42U);
  EXPECT_EQ(client_->Publish(43)->told, 1U) << "the client's own call makes it";
  EXPECT_EQ(listener_.last_news, 43U);
}

TEST_F(Callbacks, fail_once_the_client_has_let_go_of_its_binding) {
  ASSERT_TRUE(listen());
  ASSERT_TRUE(client_->Subscribe());
  client_.reset();
  EXPECT_TRUE(eventually([&] { return server_->statistics().bindings == 0; }));
  const auto told = service_.publish(1);
  EXPECT_EQ(told.lost, 1U);
  EXPECT_EQ(static_cast<Errc>(told.last_error), Errc::binding_revoked);
  EXPECT_TRUE(eventually([&] { return own_->statistics().bindings == 0; }))
      << "with the last stub the client's side ends, too";
}

TEST_F(Callbacks, end_with_the_server_that_served_them_and_may_be_offered_again) {
  ASSERT_TRUE(listen());
  ASSERT_TRUE(client_->Sum(1));
  ChatterListener other;
  EXPECT_EQ(client_->serve_callbacks(*own_, other).code(), Errc::peer_gone) << "one at a time";
  EXPECT_TRUE(client_->Sum(1));
  own_ = std::make_unique<lrpc::Server>();
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(client_->Sum(1));
    return service_.last_error().code == Errc::binding_revoked;
  }));
  ASSERT_TRUE(client_->serve_callbacks(*own_, other));
  EXPECT_EQ(client_->Sum(3).value(), 6U);
  EXPECT_EQ(other.doubled, 3U);
}

TEST_F(Callbacks, that_a_poller_makes_are_late_and_not_lost) {
  auto eager = another({.gate = Gate::exchange});
  ASSERT_TRUE(eager) << eager.error().message();
  ASSERT_TRUE(eager->serve_callbacks(*own_, listener_));
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(eager->Ping());  // makes the A-stack hot
  for (int i = 0; i < 200; ++i) ASSERT_EQ(eager->SumUnmarked(3).value(), 6U);
}

TEST_F(Callbacks, a_client_that_hangs_holds_its_server_no_longer_than_the_server_waits) {
  ASSERT_TRUE(listen());
  EXPECT_EQ(ask("hang", kPatienceMs, 50), Errc::call_aborted);
  listener_.let_go = true;
  EXPECT_TRUE(eventually([&] { return ask() == Errc::ok; })) << "within 50 ms, too";
}

TEST_F(Callbacks, a_server_that_goes_does_not_wait_for_a_client_that_hangs) {
  ASSERT_TRUE(listen());
  std::thread caller([&] { (void)client_->Ask("hang", kPatienceMs, 0); });
  while (own_->statistics().bindings == 0) std::this_thread::sleep_for(1ms);
  server_.reset();
  listener_.let_go = true;
  caller.join();
}

// ---- Mutual recursion ----

TEST_F(Callbacks, recurse_as_deep_as_there_are_astacks) {
  ASSERT_TRUE(listen());
  for (std::uint32_t depth = 0; depth <= 7; ++depth) EXPECT_EQ(client_->Recurse(depth).value(), depth);
  EXPECT_EQ(lrpc::client::nesting_depth(), 0U);
}

TEST_F(Callbacks, that_recurse_deeper_fail_where_the_client_does_not_wait_for_an_astack) {
  start({.supply = lrpc::AStackSupply::fail});
  ASSERT_TRUE(listen());
  EXPECT_FALSE(client_->Recurse(8));
  EXPECT_EQ(listener_.innermost, Errc::no_astack);
  EXPECT_EQ(client_->Recurse(7).value(), 7U) << "and everything is back";
}

TEST_F(Callbacks, that_recurse_deeper_are_aborted_where_the_client_waits_for_so_long) {
  start({.call_timeout = 200ms});
  ASSERT_TRUE(listen());
  // The outermost call gives up first, and the others right after it. On a busy machine that may happen before the
  // innermost one is made; then it is tried again.
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(client_->Recurse(8));
    for (int k = 0; k < 50 && listener_.innermost == Errc::ok; ++k) std::this_thread::sleep_for(10ms);
    return listener_.innermost != Errc::ok;
  }));
  EXPECT_EQ(listener_.innermost, Errc::call_aborted);
  EXPECT_TRUE(eventually([&] {  // until the quarantines have ended
    const auto back = client_->Recurse(7);
    return back && *back == 7;
  }));
}

// ---- Dishonest clients ----

std::size_t open_descriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST_F(Callbacks, are_not_made_over_what_is_no_socket_pair) {
  auto bystander = another();
  ASSERT_TRUE(bystander && bystander->Ping() && client_->Ping());
  const std::size_t before = open_descriptors();
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  lrpc::UniqueFd files[] = {lrpc::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)), lrpc::UniqueFd(pipes[0]),
                            lrpc::UniqueFd(pipes[1]), lrpc::UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
                            lrpc::UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_EQ(::bind(files[4].get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(files[4].get(), 1), 0);
  for (const auto& file : files) {
    ASSERT_TRUE(offer(file.get()));
    EXPECT_EQ(ask(), Errc::not_supported);
    wait_until_offers_are_closed();
  }
  for (auto& file : files) file.reset();
  EXPECT_TRUE(bystander->Ping());
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }))
      << before << " were open, now " << open_descriptors();
  const auto listening = listen();
  ASSERT_TRUE(listening) << "garbage does not use the offer up: " << listening.error().message();
  EXPECT_EQ(ask(), Errc::ok);
}

/// Offers one end of a pair, and waits until it is accepted.
lrpc::UniqueFd offer_pair(Chatter::Client& client) {
  auto kept = lrpc::detail::StubAccess::offer_callback(client.binding());
  EXPECT_TRUE(kept) << kept.error().message();
  return kept ? *std::move(kept) : lrpc::UniqueFd();
}

TEST_F(Callbacks, time_out_over_a_socket_that_nobody_answers) {
  const auto silent = offer_pair(*client_);
  EXPECT_EQ(ask("?", 50), Errc::timed_out);
  EXPECT_EQ(ask("?", 50), Errc::timed_out) << "a client that is only slow may be asked again";
  EXPECT_TRUE(client_->Ping());
}

TEST_F(Callbacks, time_out_beside_one_that_waits_longer_for_the_same_client) {
  auto silent = offer_pair(*client_);
  auto patient = client_->start().Ask("?", kPatienceMs, kPatienceMs);
  pollfd asked{silent.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&asked, 1, kPatienceMs), 1);
  EXPECT_EQ(ask("?", 20), Errc::timed_out);
  EXPECT_FALSE(patient.ready());
  silent.reset();
  EXPECT_EQ(static_cast<Errc>(patient.finish().value().code), Errc::peer_gone);
}

TEST_F(Callbacks, reach_a_client_that_was_slow_the_first_time) {
  auto slow = offer_pair(*client_);
  EXPECT_EQ(ask("?", 20), Errc::timed_out);
  ASSERT_TRUE(serve_on(std::move(slow)));
  EXPECT_EQ(ask("?"), Errc::ok);
}

TEST_F(Callbacks, fail_over_a_socket_that_answers_garbage_or_hangs_up) {
  {
    const auto garbled = offer_pair(*client_);
    ASSERT_EQ(send(garbled.get(), "nonsense", 8, 0), 8);
    EXPECT_EQ(ask(), Errc::bad_message);
    EXPECT_EQ(ask(), Errc::not_supported) << "that offer is used up";
  }
  offer_pair(*client_).reset();
  EXPECT_EQ(ask(), Errc::peer_gone);
  ASSERT_TRUE(listen());
  EXPECT_EQ(ask(), Errc::ok);
}

TEST_F(Callbacks, a_full_socket_does_not_hold_the_server_either) {
  const auto kept = offer_pair(*client_);
  // The peer's buffer is as small as possible, and nobody reads: even the import request must wait.
  const int little = 1;
  (void)setsockopt(kept.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("?", 5), Errc::timed_out);
}

TEST_F(Callbacks, offers_without_end_keep_nobody_waiting) {
  auto bystander = another();
  ASSERT_TRUE(bystander);
  auto pair = shim::make_socket_pair();
  ASSERT_TRUE(pair);
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    while (!stop) (void)offer(pair->first.get());
  });
  for (int i = 0; i < 5; ++i) {
    auto other = another({.timeout = kPatience, .call_timeout = kPatience});
    ASSERT_TRUE(other) << other.error().message();
    EXPECT_TRUE(other->Ping());
    EXPECT_TRUE(bystander->Ping());
  }
  stop = true;
  flood.join();
}

TEST_F(Callbacks, are_not_made_to_another_process_than_the_client) {
  auto kept = offer_pair(*client_);
  const Process other({LRPC_TEST_CLIENT, "serve", std::to_string(kept.get())}, {kept.get()});
  kept.reset();
  EXPECT_EQ(ask("?"), Errc::not_permitted);
}

TEST(CallbackOffers, to_a_server_that_declares_no_callback_are_dropped) {
  ConformanceService service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(lrpc::detail::StubAccess::offer_callback(client->binding()).code(), Errc::peer_gone);
  EXPECT_TRUE(client->Null());
}

// ---- Clients in their own processes, bound by name ----

class CallbackProcesses : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Chatter::export_to(server_, "chatter", service_)); }
  /// A client process that has subscribed.
  [[nodiscard]] Process start_client(const char* then) const {
    return Process({LRPC_TEST_CLIENT, "chatter", world_.nameserver(), then});
  }

  World world_;
  ChatterService service_;
  lrpc::Server server_{{.nameserver = world_.nameserver()}};
};

TEST_F(CallbackProcesses, subscribers_in_other_processes_are_told_until_they_die) {
  Process one = start_client("stay");
  const Process two = start_client("stay");
  EXPECT_EQ(service_.publish(1).told, 2U);
  one.kill_and_wait();
  const auto told = service_.publish(2);
  EXPECT_EQ(told.told, 1U);
  EXPECT_EQ(told.lost, 1U);
  const auto why = static_cast<Errc>(told.last_error);
  EXPECT_TRUE(why == Errc::binding_revoked || why == Errc::call_failed) << told.last_error;
  EXPECT_EQ(service_.publish(3).told, 1U);
}

TEST_F(CallbackProcesses, a_client_that_dies_while_it_is_called_back_fails_that_call) {
  Process dies = start_client("hang");
  std::this_thread::sleep_for(50ms);  // the callback runs by now, or finds no client
  dies.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return server_.statistics().bindings == 0; }));
  (void)service_.publish(1);  // so that the service forgets the client
  const Process next = start_client("stay");
  EXPECT_EQ(service_.publish(2).told, 1U);
}

TEST_F(CallbackProcesses, a_stopped_client_holds_up_only_who_calls_it_back) {
  const Process stopped = start_client("stay");
  stopped.send(SIGSTOP);
  siginfo_t state{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(stopped.pid()), &state, WSTOPPED | WEXITED | WNOWAIT), 0);
  ASSERT_EQ(state.si_code, CLD_STOPPED);
  std::thread publisher([&] {
    const auto told = service_.publish(1);  // it may or may not arrive in time
    EXPECT_EQ(told.told + told.lost, 1U);
  });
  EXPECT_TRUE(eventually([&] { return service_.publications != 0; })) << "to this client alone";
  EXPECT_NO_THROW((void)start_client("sum"));
  stopped.send(SIGCONT);
  publisher.join();
}

}  // namespace
}  // namespace testing_lrpc
