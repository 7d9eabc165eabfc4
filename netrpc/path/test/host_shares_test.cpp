// What other hosts hold of the network domain together: however much some of them take, the next one finds some.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "lrpc/detail/shim/most_of_one.h"
#include "messages.h"
#include "remote_fixture.h"

namespace testing_netpath {
namespace {

using lrpc::netpath::Command;
using lrpc::shim::most_of_one;

constexpr HostAddress kFirst = 0x0a00'0101;
constexpr std::size_t kAll = 8;

TEST(MostOfOne, leaves_some_to_each_that_comes_later) {
  constexpr std::size_t kMany = 1024;
  std::vector<std::size_t> taken;
  std::size_t in_use = 0;
  for (std::size_t has = 0; in_use < kMany; has = 0) {  // one host after the other takes all that it may have
    while (in_use < kMany && has < most_of_one(has, in_use, kMany)) ++has, ++in_use;
    ASSERT_NE(has, 0U);
    taken.push_back(has);
  }
  EXPECT_EQ(taken.front(), 448U);
  EXPECT_GT(taken.size(), kMany / 8) << "the last eighth goes to as many hosts";
  EXPECT_EQ(most_of_one(0, kMany, kMany), 1U) << "if there is any";
}

class Shared : public TwoHosts {
 protected:
  void start(BrokerOptions options) {
    there_->stop_broker();
    options.exported = [](std::string_view) { return true; };
    there_->start_broker(std::move(options));
  }
  /// The refusal of a BIND of `from`, or the answer's code.
  Errc bind(HostAddress from, const std::string& name, std::uint32_t wait_ms = 0) {
    lrpc::netpath::BindMessage message{1, name, {}, wait_ms};
    const auto& id = Conformance::kPdl.interface;
    message.interface = {std::string(id.name), id.major, id.minor, id.hash};
    std::array<std::byte, 500> reply{};
    std::size_t size = 0;
    const Errc refused = serve(from, Command::bind, lrpc::netpath::encode(message), reply, size);
    const auto answer = lrpc::netpath::decode_bind_answer(std::span(reply).first(size));
    return refused != Errc::ok ? refused : answer ? answer->code : Errc::bad_message;
  }
  Errc ping(HostAddress from) {
    std::array<std::byte, 500> reply{};
    std::size_t size = 0;
    return serve(from, Command::ping, lrpc::netpath::encode(lrpc::netpath::PingMessage{1, {}}), reply, size);
  }

 private:
  Errc serve(HostAddress from, Command command, std::string_view request, std::span<std::byte> reply,
             std::size_t& size) {
    return static_cast<Errc>(there_->broker().serve({from, lrpc::shim::HostAuthentication::key, "lab"},
                                                    ++network_.arrivals, static_cast<std::uint16_t>(command),
                                                    lrpc::netpath::bytes_of(request), reply, size));
  }
};

TEST_F(Shared, bindings_are_left_to_hosts_that_come_later) {
  BrokerOptions options;
  options.max_bindings = kAll;
  start(options);
  std::vector<std::size_t> bound;
  for (HostAddress host = kFirst; host != kFirst + 4; ++host) {
    std::size_t has = 0;
    while (has < kAll && bind(host, "files") == Errc::ok) ++has;
    bound.push_back(has);
  }
  EXPECT_EQ(bound, (std::vector<std::size_t>{3, 2, 1, 1}));
}

TEST_F(Shared, commands_of_others_are_served_while_those_of_some_take_long) {
  BrokerOptions options;
  options.max_commands = kAll;
  options.max_waiting_binds_per_host = options.max_waiting_binds = 100;
  start(options);
  std::atomic<std::size_t> refused = 0;
  std::vector<std::thread> callers;
  const auto occupy = [&](HostAddress host) {
    for (std::size_t i = 0; i < kAll; ++i)
      callers.emplace_back([&, host] {
        if (bind(host, "late", 10'000) == Errc::limit_reached) ++refused;
      });
  };
  occupy(kFirst);
  EXPECT_TRUE(eventually([&] { return refused == kAll - 3; })) << refused;
  occupy(kFirst + 1);
  EXPECT_TRUE(eventually([&] { return refused == 2 * kAll - 5; })) << refused;
  EXPECT_EQ(ping(kFirst + 2), Errc::ok);
  EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 2 * kAll - 5);
  EXPECT_EQ(ping(kFirst), Errc::ok) << "what has been served counts no more";
}

TEST_F(Shared, binds_that_wait_for_a_name_leave_places_to_hosts_that_come_later) {
  constexpr std::array<std::size_t, 5> kShares{3, 2, 1, 1, 1};
  BrokerOptions options;
  options.max_waiting_binds = kAll;
  options.max_waiting_binds_per_host = kAll / 2;
  start(options);
  const auto began = std::chrono::steady_clock::now();
  std::array<std::atomic<std::size_t>, kShares.size()> refused{};
  std::array<std::atomic<std::size_t>, kShares.size()> bound{};
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    for (std::size_t one = 0; one < kAll; ++one) {
      callers.emplace_back([&, i] {
        const Errc code = bind(kFirst + static_cast<HostAddress>(i), "late", 10'000);
        ++(code == Errc::ok ? bound : refused).at(i);
      });
    }
    EXPECT_TRUE(eventually([&] { return refused.at(i) != 0; })) << "host " << i << " has all that it may have";
  }
  const auto all_refused = [&] { return std::accumulate(refused.begin(), refused.end(), std::size_t{0}); };
  EXPECT_TRUE(eventually([&] { return all_refused() >= (kShares.size() - 1) * kAll; })) << "the others wait";
  EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  for (std::thread& caller : callers) caller.join();
  if (std::chrono::steady_clock::now() - began >= std::chrono::seconds(10)) return;  // as long as one waits at most
  for (std::size_t i = 0; i < kShares.size(); ++i) EXPECT_EQ(bound.at(i), kShares.at(i)) << "host " << i;
}

}  // namespace
}  // namespace testing_netpath
