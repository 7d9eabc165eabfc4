// A host that falls silent: its bindings end at one bound, whether in use or not. The test advances the clock.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "messages.h"
#include "remote_fixture.h"
#include "vain_hosts.h"

namespace testing_netpath {
namespace {

using namespace std::chrono_literals;

class SilentHosts : public TwoHosts {
 protected:
  void SetUp() override {
    here_->stop_broker();
    BrokerOptions options;
    options.keepalive = kKeepalive;
    options.now = [time = time_] { return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(*time)); };
    here_->start_broker(options);
    auto idle = Conformance::Client::import("files@10.0.0.2", watching(told_idle_));
    auto used = Conformance::Client::import("files@10.0.0.2", watching(told_used_));
    ASSERT_TRUE(idle && used);
    idle_ = std::make_unique<Conformance::Client>(*std::move(idle));
    used_ = std::make_unique<Conformance::Client>(*std::move(used));
  }
  void TearDown() override {
    network_.join();
    idle_.reset();
    used_.reset();
  }
  [[nodiscard]] lrpc::ImportOptions watching(std::atomic<int>& told) const {
    auto options = import_options();
    options.on_revoked = [&told] { ++told; };
    return options;
  }
  void go_on(std::chrono::nanoseconds span) { *time_ += span.count(); }
  /// Advances the clock by a time without answers, in which some keepalives are lost.
  void pass(std::chrono::nanoseconds span) {
    go_on(span);
    const int before = network_.missed_pings;
    EXPECT_TRUE(eventually([&] { return network_.missed_pings >= before + 3; }));
  }

  /// Nanoseconds. Shared with the broker.
  const std::shared_ptr<std::atomic<std::int64_t>> time_ =
      std::make_shared<std::atomic<std::int64_t>>(std::chrono::nanoseconds(1h).count());
  std::atomic<int> told_idle_{0};
  std::atomic<int> told_used_{0};
  std::unique_ptr<Conformance::Client> idle_;
  std::unique_ptr<Conformance::Client> used_;
};

TEST_F(SilentHosts, keep_their_bindings_in_use_or_not_if_they_come_back_in_time) {
  network_.part();
  auto call = used_->start().Add(40, 2);
  EXPECT_TRUE(eventually([&] { return network_.waiting > 0; }));
  for (int i = 0; i < 4; ++i) pass(7s);
  EXPECT_EQ(told_idle_ + told_used_, 0);
  network_.join();
  EXPECT_EQ(call.finish().value(), 42);
  EXPECT_EQ(idle_->Add(1, 2).value(), 3);
  const std::uint64_t before = network_.pings;
  EXPECT_TRUE(eventually([&] { return network_.pings >= before + 2; }));
  network_.part();
  pass(29s);  // since the answer to the last keepalive
  EXPECT_EQ(told_idle_ + told_used_, 0);
}

TEST_F(SilentHosts, lose_their_bindings_in_use_or_not_when_they_do_not) {
  network_.part();
  auto call = used_->start().Add(40, 2);
  EXPECT_TRUE(eventually([&] { return network_.waiting > 0; }));
  go_on(30s);
  EXPECT_TRUE(eventually([&] { return told_idle_ == 1; }));
  network_.give_up();  // the transport gives up at the same time
  EXPECT_EQ(call.finish().code(), Errc::call_failed);
  EXPECT_TRUE(eventually([&] { return told_used_ == 1; }));
  EXPECT_EQ(idle_->Null().code(), Errc::binding_revoked);
  EXPECT_EQ(used_->Null().code(), Errc::binding_revoked);
}

TEST_F(SilentHosts, that_could_not_be_asked_have_neither_answered_nor_been_silent) {
  network_.part();
  pass(20s);
  network_.choke();  // this host lacks a resource
  EXPECT_TRUE(eventually([&] { return network_.unsent_pings >= 2; }));
  go_on(20s);
  const int before = network_.unsent_pings;
  EXPECT_TRUE(eventually([&] { return network_.unsent_pings >= before + 2; }));
  EXPECT_EQ(told_idle_ + told_used_, 0) << "nobody knows whether it would have answered";
  EXPECT_EQ(used_->Null().code(), Errc::limit_reached);
  const auto refused = import();
  EXPECT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("this machine's network domain or the other's"), std::string::npos)
      << refused.error().text;
  network_.part();
  EXPECT_TRUE(eventually([&] { return told_idle_ == 1 && told_used_ == 1; })) << "40 s after its last answer";
}

TEST_F(SilentHosts, to_which_there_is_no_way_for_a_while_are_called_when_there_is_one) {
  network_.block();
  auto call = used_->start().Add(40, 2);
  EXPECT_TRUE(eventually([&] { return network_.waiting >= 2; })) << "it is tried again";
  pass(7s);
  network_.join();
  EXPECT_EQ(call.finish().value(), 42);
  network_.block();
  {
    const lrpc::CallScope scope{300ms};
    EXPECT_EQ(used_->Null().code(), Errc::call_aborted) << "by its deadline";
  }
  EXPECT_EQ(told_used_, 0);
  const int before = network_.waiting;
  auto last = used_->start().Null();
  EXPECT_TRUE(eventually([&] { return network_.waiting > before; }));
  go_on(30s);
  EXPECT_EQ(last.finish().code(), Errc::call_failed);
  EXPECT_TRUE(eventually([&] { return told_idle_ == 1 && told_used_ == 1; }));
}

TEST_F(SilentHosts, to_which_there_is_no_way_are_told_of_what_is_left_of_a_limit_and_not_called_for_who_does_not_wait) {
  std::mutex mutex;
  std::vector<std::uint32_t> limits;
  network_.tamper([&](std::uint16_t command, std::vector<std::byte>& request) {
    if (command != Network::kCall) return;
    const std::lock_guard lock(mutex);
    limits.push_back(lrpc::netpath::decode_call(request).value().prologue.remaining_ms);
  });
  network_.block();
  const lrpc::Cancellation cancellation;
  {
    const lrpc::CallScope scope{10min, cancellation};
    auto call = used_->start().Null();
    EXPECT_TRUE(eventually([&] { return network_.waiting >= 3; }));
    cancellation.cancel();
    EXPECT_EQ(call.finish().code(), Errc::call_cancelled);
  }
  EXPECT_TRUE(eventually([&] {
    const int before = network_.waiting;
    std::this_thread::sleep_for(500ms);  // the retry interval is a fifth of this
    return network_.waiting == before;
  }));
  network_.join();
  EXPECT_TRUE(used_->Null()) << "the binding has not ended";
  const std::lock_guard lock(mutex);
  EXPECT_LE(limits[0], 600'000U);
  EXPECT_LT(limits[1], limits[0]);
  EXPECT_LT(limits[2], limits[1]);
  network_.tamper({});
}

TEST_F(SilentHosts, that_nobody_asks_keep_their_bindings_however_long_they_are_idle_and_out_of_reach) {
  idle_.reset();
  used_.reset();
  here_->stop_broker();
  BrokerOptions options;
  options.keepalive = options.silence = lrpc::kNoLimit;
  options.now = [time = time_] { return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(*time)); };
  here_->start_broker(options);
  const int told = told_idle_;
  auto client = Conformance::Client::import("files@10.0.0.2", watching(told_idle_));
  ASSERT_TRUE(client) << client.error().message();
  go_on(1h);
  network_.block();
  auto call = client->start().Add(40, 2);
  const int before = network_.waiting;
  EXPECT_TRUE(eventually([&] { return network_.waiting >= before + 3; })) << "it is tried again";
  network_.join();
  EXPECT_EQ(call.finish().value(), 42);
  EXPECT_EQ(told_idle_, told);
}

TEST_F(SilentHosts, keep_no_calls_for_long_whose_clients_have_gone) {
  const auto paths = [&] { return here_->broker().statistics().paths; };
  network_.part();
  {
    auto call = used_->start().Null();
    EXPECT_TRUE(eventually([&] { return network_.waiting > 0; }));
  }
  used_.reset();
  pass(20s);
  EXPECT_EQ(paths(), 2U) << "its host may still say how it has ended";
  go_on(31s);
  EXPECT_TRUE(eventually([&] { return paths() == 0; })) << "the idle one has ended as its host is silent";
}

TEST_F(SilentHosts, that_do_not_answer_an_import_are_said_to_be_silent) {
  network_.part();
  const auto client = Conformance::Client::import("files@10.0.0.2", import_options());
  EXPECT_EQ(client.code(), lrpc::Errc::timed_out);
  EXPECT_NE(client.error().text.find("did not answer in time"), std::string::npos) << client.error().text;
}

TEST_F(SilentHosts, to_which_there_is_no_way_cannot_be_imported_from) {
  network_.block();
  const auto client = Conformance::Client::import("files@10.0.0.2", import_options());
  EXPECT_EQ(client.code(), lrpc::Errc::remote_unavailable);
  EXPECT_NE(client.error().text.find("cannot be reached"), std::string::npos) << client.error().text;
}

/// Imports from hosts that bind nothing.
class VainImports : public SilentHosts {
 protected:
  static constexpr unsigned kMost = lrpc::netpath::VainHosts::kMost;
  static std::string host(unsigned number) {
    return "10.9." + std::to_string(number / 200) + "." + std::to_string(number % 200 + 1);
  }
  /// Whether an import may ask the host of `name`.
  bool may_ask(const std::string& name) {
    bool refused = false;
    EXPECT_TRUE(eventually([&] {  // again, while ended bindings are still counted
      const auto client = import(name);
      refused = !client && client.error().message().find("asked too many hosts") != std::string::npos;
      return refused || client || client.code() == Errc::remote_unavailable || client.code() == Errc::name_unknown;
    }));
    return !refused;
  }
  /// Imports `name` from one host after the other.
  void ask_as_many_as_one_user_may(const std::string& name) {
    unsigned asked = 0;
    while (asked < kMost && may_ask(name + "@" + host(asked))) ++asked;
    EXPECT_EQ(asked, kMost / 2);
    EXPECT_TRUE(may_ask(name + "@" + host(0))) << "it counts already";
  }
};

TEST_F(VainImports, can_ask_silent_hosts_up_to_a_number_within_some_minutes) {
  here_->wire().agrees = false;
  ask_as_many_as_one_user_may("files");
  here_->wire().agrees = true;
  EXPECT_FALSE(may_ask("files@10.0.0.2")) << "whether it answers is not known";
  go_on(lrpc::netpath::VainHosts::kKept);
  const auto client = import();
  EXPECT_TRUE(client) << client.error().message();
}

TEST_F(VainImports, can_ask_hosts_that_refuse_up_to_the_same_number_and_those_that_bind_do_not_count) {
  constexpr HostAddress kHostZero = 0x0a09'0001;
  for (HostAddress number = 0; number < kMost; ++number)
    network_.attach(kHostZero + (number / 200 << 8) + number % 200, &there_->broker());
  EXPECT_TRUE(import("files@" + host(kMost - 1))) << "a name that is there";
  ask_as_many_as_one_user_may("nothing");
  EXPECT_FALSE(may_ask("nothing@10.0.0.2"));
}

/// A host that answers each time, but late.
class SlowHosts : public TwoHosts {
 protected:
  static constexpr HostAddress kSlow = 0x0a00'0003;

  /// Another host with the names of `there`. Its answers to keepalives wait until let_through permits them.
  class Slow final : public RemoteService {
   public:
    Slow(Network& network, RemoteService& there) : network_(network), there_(there) { network_.attach(kSlow, this); }
    Slow(const Slow&) = delete;
    Slow& operator=(const Slow&) = delete;
    ~Slow() override {
      let_through = ~0U;
      network_.cut(kSlow);
    }
    std::uint16_t serve(const lrpc::Principal& from, lrpc::netpath::Arrival arrived, std::uint16_t command,
                        std::span<const std::byte> request, std::span<std::byte> reply,
                        std::size_t& size) noexcept override {
      if (command == Network::kBind) return there_.serve(from, arrived, command, request, reply, size);
      if (command != Network::kPing) return 0;
      for (const unsigned number = ++asked; number > let_through;) std::this_thread::sleep_for(1ms);
      return static_cast<std::uint16_t>(Errc::limit_reached);  // it is alive, but busy
    }
    void peer_rebooted(HostAddress /*host*/, lrpc::netpath::Arrival /*last*/) noexcept override {}
    std::atomic<unsigned> asked{0};
    std::atomic<unsigned> let_through{0};

   private:
    Network& network_;
    RemoteService& there_;
  };
};

TEST_F(SlowHosts, do_not_keep_others_from_hearing_what_has_been_let_go) {
  Slow slow(network_, there_->broker());
  const auto keeps = import("files@10.0.0.3");
  ASSERT_TRUE(keeps) << keeps.error().message();
  ASSERT_TRUE(eventually([&] { return slow.asked == 1; }));
  ASSERT_TRUE(import());
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 1; }));
  EXPECT_EQ(slow.asked, 1U) << "nobody has waited for it";
}

TEST_F(SlowHosts, do_not_keep_clients_of_others_from_hearing_that_their_bindings_have_ended) {
  std::atomic<int> told{0};
  auto options = import_options();
  options.on_revoked = [&] { ++told; };
  const auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  Slow slow(network_, there_->broker());
  const auto keeps = import("files@10.0.0.3");
  ASSERT_TRUE(keeps) << keeps.error().message();
  ASSERT_TRUE(eventually([&] { return slow.asked == 1; }));
  there_->stop_broker();
  slow.let_through = 1;  // no further keepalive passes
  EXPECT_TRUE(eventually([&] { return told == 1; }));
}

TEST_F(SlowHosts, do_not_keep_others_from_their_keepalives_while_they_hear_what_has_been_let_go) {
  constexpr int kBindings = 60;
  const auto stays = import();
  ASSERT_TRUE(stays) << stays.error().message();
  std::vector<Conformance::Client> goes;
  for (int i = 0; i < kBindings; ++i) {
    auto one = import();
    ASSERT_TRUE(one) << one.error().message();
    goes.push_back(*std::move(one));
  }
  struct Heard {
    std::atomic<bool> held{true};
    std::atomic<int> unbinds{0};
    std::uint64_t pings = 0;
    int in_a_row = 0;  ///< UNBINDs since the last keepalive.
    std::atomic<int> longest_row{0};
  };
  const auto heard = std::make_shared<Heard>();  // shared, because the network uses it in calls that outlive the test
  network_.tamper([this, heard](std::uint16_t command, std::vector<std::byte>&) {
    if (command != Network::kUnbind) return;
    const int number = ++heard->unbinds;
    while (number == 1 && heard->held) std::this_thread::sleep_for(1ms);
    const std::uint64_t pings = network_.pings;
    if (std::exchange(heard->pings, pings) != pings) heard->in_a_row = 0;
    heard->longest_row = std::max(heard->longest_row.load(), ++heard->in_a_row);
    std::this_thread::sleep_for(20ms);
  });
  goes.clear();
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 1; }));
  heard->held = false;
  EXPECT_TRUE(eventually([&] { return heard->unbinds == kBindings; }));
  EXPECT_LT(heard->longest_row, kBindings / 2) << "its turn is a fifth of a second";
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 1; }));
}

TEST_F(SlowHosts, are_not_told_of_more_bindings_than_there_may_be) {
  constexpr std::size_t kBindings = 8;
  constexpr int kRounds = 40;
  here_->stop_broker();
  here_->start_broker({.max_paths = kBindings, .keepalive = kKeepalive});
  struct Heard {
    std::atomic<bool> held{true};
    std::atomic<int> unbinds{0};
  };
  const auto heard = std::make_shared<Heard>();
  network_.tamper([heard](std::uint16_t command, std::vector<std::byte>&) {
    if (command != Network::kUnbind) return;
    const int number = ++heard->unbinds;
    while (number == 1 && heard->held) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(60ms);
  });
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(eventually([&] { return import().has_value(); }));  // and unbinds
    EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0 && heard->unbinds == 1; }));
  }
  heard->held = false;
  EXPECT_TRUE(eventually([&] {
    const int before = heard->unbinds;
    std::this_thread::sleep_for(500ms);
    return heard->unbinds == before;
  }));
  EXPECT_LE(heard->unbinds, 1 + 2 * static_cast<int>(kBindings));
}

}  // namespace
}  // namespace testing_netpath
