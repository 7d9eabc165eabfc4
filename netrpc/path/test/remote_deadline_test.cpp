// The deadline of a call to another host: it travels with the call, is inherited by the calls that the procedure makes,
// and ends the wait at each hop.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "limits_service.h"
#include "lrpc/client.h"
#include "remote_fixture.h"
#include "served_hosts.h"

namespace testing_netpath {
namespace {

using lrpc::CallScope;
using lrpc::Cancellation;
using testing_lrpc::LimitsService;
using namespace std::chrono_literals;

/// Milliseconds. The procedure that waits for so long ends earlier, when its caller's time is over.
constexpr std::uint32_t kForever = 600'000;

/// A server on `there`, called from here, and a server here, which that server calls: two hops over the network.
class RemoteDeadlines : public TwoHosts {
 protected:
  void SetUp() override {
    here_->stop_broker();
    here_->start_broker(there_options());  // this host exports a name, too
    there_server_ = std::make_unique<lrpc::Server>(lrpc::ServerOptions{.nameserver = there_->socket()});
    here_server_ = std::make_unique<lrpc::Server>(lrpc::ServerOptions{.nameserver = here_->socket()});
    ASSERT_TRUE(Limits::export_to(*there_server_, "limits", limits_));
    ASSERT_TRUE(Limits::export_to(*here_server_, "last", last_));
    auto behind = Limits::Client::import("last@10.0.0.1", {.nameserver = there_->socket()});
    ASSERT_TRUE(behind) << behind.error().message();
    behind_ = std::make_unique<Limits::Client>(*std::move(behind));
    limits_.behind = behind_.get();
    auto client = Limits::Client::import("limits@10.0.0.2", import_options());
    ASSERT_TRUE(client) << client.error().message();
    client_ = std::make_unique<Limits::Client>(*std::move(client));
  }
  void TearDown() override {
    limits_.released = last_.released = true;
    client_.reset();
    there_server_.reset();
    behind_.reset();
    here_server_.reset();
  }

  LimitsService limits_;
  LimitsService last_;
  std::unique_ptr<lrpc::Server> there_server_;
  std::unique_ptr<lrpc::Server> here_server_;
  std::unique_ptr<Limits::Client> behind_;
  std::unique_ptr<Limits::Client> client_;
};

TEST_F(RemoteDeadlines, are_seen_by_the_procedure_and_run_down) {
  EXPECT_FALSE(client_->Left()->limited);
  const CallScope scope{1h};
  for (int i = 0; i < 20; ++i) {
    const auto left = client_->Left();
    ASSERT_TRUE(left && left->limited);
    // The time travels in milliseconds, rounded up; the caller's own wait ends exactly on time.
    EXPECT_LE(left->nanoseconds, std::chrono::nanoseconds(1h + 1ms).count());
    EXPECT_GT(left->nanoseconds, 0);
    EXPECT_LT(left->later, left->nanoseconds);
  }
  EXPECT_LE(client_->start().Left().finish()->nanoseconds, std::chrono::nanoseconds(1h + 1ms).count());
}

TEST_F(RemoteDeadlines, end_the_call_here_and_are_heard_of_by_the_procedure_there) {
  EXPECT_TRUE(eventually([&] {  // again, if the time was over before the call arrived
    {
      const CallScope scope{50ms};
      EXPECT_EQ(client_->Hold(kForever).code(), Errc::call_aborted);
    }
    return limits_.abandonments > 0;
  }));
  EXPECT_TRUE(client_->Null());
  EXPECT_FALSE(client_->binding().revoked());
}

TEST_F(RemoteDeadlines, that_have_passed_keep_a_call_from_being_executed) {
  const auto before = limits_.asked.load();
  {
    const CallScope scope{std::chrono::steady_clock::now()};
    EXPECT_EQ(client_->Left().code(), Errc::call_aborted);
  }
  ASSERT_TRUE(client_->Left());
  EXPECT_EQ(limits_.asked, before + 1);
}

TEST_F(RemoteDeadlines, do_not_hold_for_imports) {
  Cancellation cancelled;
  cancelled.cancel();
  const CallScope scope{std::chrono::steady_clock::now(), cancelled};
  const auto client = Limits::Client::import("limits@10.0.0.2", import_options());
  EXPECT_TRUE(client) << client.error().message();
}

TEST_F(RemoteDeadlines, pass_on_over_the_network_to_the_server_behind_a_server) {
  EXPECT_FALSE(client_->LeftBehind(false)->limited);
  {
    const CallScope scope{1h};
    const auto behind = client_->LeftBehind(false);
    ASSERT_TRUE(behind && behind->limited);
    EXPECT_GT(behind->nanoseconds, 0);
    EXPECT_LE(behind->nanoseconds, std::chrono::nanoseconds(1h + 2ms).count());
    EXPECT_FALSE(client_->LeftBehind(true)->limited) << "a fresh scope has none of it";
  }
  EXPECT_FALSE(client_->LeftBehind(false)->limited) << "no thread on the way has kept it";
}

TEST_F(RemoteDeadlines, end_every_call_of_a_chain_over_the_network) {
  EXPECT_TRUE(eventually([&] {  // again, if the time was over before the call reached the last server
    {
      const CallScope scope{100ms};
      EXPECT_EQ(client_->HoldBehind(kForever).code(), Errc::call_aborted);
    }
    return last_.abandonments > 0;
  }));
  EXPECT_TRUE(eventually([&] { return limits_.behind_ended == static_cast<int>(Errc::call_aborted); }));
  EXPECT_TRUE(client_->Null());
}

TEST_F(RemoteDeadlines, of_a_one_way_call_run_down_there) {
  EXPECT_TRUE(eventually([&] {  // again, if the time was over before the call arrived
    {
      const CallScope scope{100ms};
      if (!client_->Note(kForever)) return false;  // no caller waits for it
    }
    std::this_thread::sleep_for(200ms);
    return limits_.noted > 0 && limits_.last_left > 0;
  })) << "the procedure hears of its end";
  EXPECT_TRUE(eventually([&] { return limits_.holding == 0 && limits_.abandonments == limits_.noted; }));
}

TEST_F(RemoteDeadlines, may_be_a_cancellation_which_ends_the_wait_here_at_once) {
  Cancellation cancellation;
  std::thread canceller([&] {
    (void)eventually([&] { return limits_.holding == 1; });
    cancellation.cancel();
  });
  {
    const CallScope scope{cancellation};
    EXPECT_EQ(client_->Hold(kForever).code(), Errc::call_cancelled);
  }
  canceller.join();
  EXPECT_TRUE(client_->Null());
  EXPECT_FALSE(client_->binding().revoked());
}

/// The broker's patience for an A-stack is shorter than the calls that hold all of them.
class ImpatientHosts : public RemoteDeadlines {
 protected:
  void SetUp() override {
    here_->stop_broker();
    there_->stop_broker();
    lrpc::netpath::ServedHosts::astack_patience = 20ms;
    there_->start_broker(there_options());
    RemoteDeadlines::SetUp();
  }
  void TearDown() override {
    RemoteDeadlines::TearDown();
    here_->stop_broker();
    there_->stop_broker();
    lrpc::netpath::ServedHosts::astack_patience = kUsual;
  }
  const milliseconds kUsual = lrpc::netpath::ServedHosts::astack_patience;
};

TEST_F(ImpatientHosts, tell_a_call_that_every_astack_there_is_kept_by_calls_whose_callers_have_gone_on) {
  Errc code = Errc::ok;
  EXPECT_TRUE(eventually([&] {
    {
      const CallScope scope{20ms};
      EXPECT_EQ(client_->Stay().code(), Errc::call_aborted);
    }
    code = client_->Null().code();
    return code != Errc::ok;
  }));
  EXPECT_EQ(code, Errc::limit_reached);
  EXPECT_FALSE(client_->binding().revoked());
  limits_.released = true;
  EXPECT_TRUE(eventually([&] { return client_->Null().has_value(); })) << "they come back";
}

/// Calls whose callers no longer wait.
class RemoteEnds : public RemoteDeadlines {
 protected:
  [[nodiscard]] bool holds() const {
    return eventually([&] { return limits_.holding == 1; });
  }
  [[nodiscard]] bool told(std::uint32_t before = 0) const {
    return eventually([&] { return limits_.abandonments > before && limits_.holding == 0; });
  }
};

TEST_F(RemoteEnds, are_heard_of_by_the_procedure_when_its_client_goes) {
  auto held = std::make_optional(client_->start().Hold(kForever));
  EXPECT_TRUE(holds());
  client_.reset();
  held.reset();
  EXPECT_TRUE(told());
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0; }));
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 0; }));
}

TEST_F(RemoteEnds, are_heard_of_by_the_procedures_of_a_group_when_their_client_goes) {
  here_->wire().set_members({kThere});
  auto client = Limits::Client::import("limits@replicas", import_options());
  ASSERT_TRUE(client) << client.error().message();
  auto held = std::make_optional(client->start().Hold(kForever));
  EXPECT_TRUE(holds());
  { const auto goes = *std::move(client); }
  held.reset();
  EXPECT_TRUE(told());
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 1; })) << "client_'s";
}

TEST_F(RemoteEnds, are_heard_of_by_the_procedure_when_its_clients_host_has_restarted) {
  auto held = client_->start().Hold(kForever);
  EXPECT_TRUE(holds());
  there_->broker().peer_rebooted(kHere, network_.arrivals);
  EXPECT_TRUE(told());
  (void)held.finish();  // succeeds if the procedure returns before the binding ends
}

TEST_F(RemoteEnds, are_heard_of_by_the_procedure_when_its_clients_host_has_fallen_silent) {
  there_->stop_broker();
  auto options = there_options();
  options.forget = 300ms;
  there_->start_broker(options);
  EXPECT_TRUE(eventually([&] {  // again, if this process was not scheduled for that long
    auto client = Limits::Client::import("limits@10.0.0.2", import_options());
    if (!client) return false;
    const std::uint32_t before = limits_.abandonments;
    auto held = client->start().Hold(kForever);
    if (!eventually([&] { return limits_.holding == 1 || held.ready(); }) || held.ready()) return false;
    network_.part();  // no more keepalives
    const bool heard = told(before);
    network_.join();
    (void)held.finish();  // succeeds if the procedure returns before the binding ends
    return heard;
  }));
}

TEST_F(RemoteEnds, come_through_where_calls_are_all_that_a_host_may_have) {
  there_->stop_broker();
  auto options = there_options();
  options.max_commands_per_host = 1;  // and a keepalive may take it
  there_->start_broker(options);
  std::unique_ptr<Limits::Client> client;
  EXPECT_TRUE(eventually([&] {
    auto made = Limits::Client::import("limits@10.0.0.2", import_options());
    if (!made) return false;
    client = std::make_unique<Limits::Client>(*std::move(made));
    return true;
  }));
  std::optional<decltype(client->start().Hold(0))> held;
  EXPECT_TRUE(eventually([&] {
    held.emplace(client->start().Hold(kForever));
    return eventually([&] { return limits_.holding == 1 || held->ready(); }) && !held->ready();
  }));
  EXPECT_EQ(client->Null().code(), Errc::limit_reached);
  client.reset();
  held.reset();
  EXPECT_TRUE(told());
}

class RemoteChain : public RemoteDeadlines {};

TEST_F(RemoteChain, says_of_a_call_that_was_made_what_the_next_one_came_to_in_words_only) {
  here_server_.reset();
  EXPECT_TRUE(eventually([&] { return behind_->Left().code() == lrpc::Errc::binding_revoked; }));
  const lrpc::Error failed = client_->LeftBehind(false).error();
  EXPECT_EQ(failed.code, lrpc::Errc::call_failed) << "it was executed";
  EXPECT_EQ(failed.text, "the procedure returned: binding revoked: nothing was called");
  EXPECT_FALSE(client_->binding().revoked());
  EXPECT_TRUE(client_->Null());
}

}  // namespace
}  // namespace testing_netpath
