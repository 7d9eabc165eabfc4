// What loss costs, in virtual time: on a fast wire that loses packets, callers keep a share of their rate on a lossless
// wire. Only the waits for lost packets differ.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kMeasuredCommand = 7;
constexpr std::string_view kLayered = "select-channel-fragment-vip";
constexpr std::string_view kMonolithic = "mrpc-vip";

/// Answers at once, with an empty reply.
class NullServer final : public Protocol {
 public:
  explicit NullServer(Host& host) : Protocol(host, "server") {}
  void call_demux(Session& lower, Message /*request*/) noexcept override { lower.reply(Message(host().pool())); }
};

/// Makes the next call as soon as it has its reply.
class Caller final : public Transaction {
 public:
  Caller(SimHosts& net, SessionRef session, std::size_t size) : net_(net), session_(std::move(session)), size_(size) {}
  void call() {
    Message request(net_[0].pool());
    for (std::size_t left = size_; left > 0;) {
      const std::size_t part = std::min(left, Message::kMaxContiguous);
      EXPECT_TRUE(request.append(net_.message(0, std::string(part, 'x'))));
      left -= part;
    }
    session_->call(std::move(request), *this, kNoLimit);
  }
  void completed(Errc outcome, Message /*reply*/) noexcept override {
    EXPECT_EQ(outcome, Errc::ok);
    ++calls;
    if (!over) call();
  }
  std::uint64_t calls = 0;
  bool over = false;

 private:
  SimHosts& net_;
  SessionRef session_;
  std::size_t size_;
};

/// The calls of all callers together in 300 ms, and the packets that the hosts sent per call. Each packet is lost with
/// probability `loss`.
struct Rate {
  std::uint64_t calls = 0;
  double packets = 0;
};
Rate rate(std::string_view stack, double loss, std::size_t callers, std::size_t size = 0, std::uint64_t seed = 1) {
  SimHosts net(2, 1, {.seed = seed, .link = {}, .routers = {}});
  const Result<ComposeStack> compose = stack_of(stack, simulated_kinds());
  EXPECT_TRUE(compose);
  std::vector<Protocol*> all[2];
  Protocol* tops[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Shepherd inside(net[i].monitor());
    tops[i] = &(*compose)(net[i], all[i]);
  }
  {
    const Shepherd inside(net[1].monitor());
    ParticipantSet participants = SimHosts::anyone();
    participants.local.command = kMeasuredCommand;
    EXPECT_TRUE(tops[1]->open_enable(net[1].add<NullServer>(), participants));
  }
  std::vector<std::unique_ptr<Caller>> callers_of_all;
  {
    const Shepherd inside(net[0].monitor());
    SinkProtocol& user = net[0].add<SinkProtocol>();
    ParticipantSet participants = net.to(1);
    participants.remote.command = kMeasuredCommand;
    for (std::size_t i = 0; i < callers; ++i) {
      Result<SessionRef> session = tops[0]->open(user, participants);
      EXPECT_TRUE(session);
      callers_of_all.push_back(std::make_unique<Caller>(net, *session, size));
    }
    for (const auto& caller : callers_of_all) caller->call();
  }
  net.world.run_for(10ms);  // by now the round trip is known
  net.world.set_links({.loss = loss});
  net.world.run_for(20ms);
  const auto so_far = [&] {
    std::uint64_t sum = 0;
    for (const auto& caller : callers_of_all) sum += caller->calls;
    return sum;
  };
  const std::uint64_t before = so_far();
  const std::uint64_t sent_before = net.world.counters().sent;
  net.world.run_for(300ms);
  Rate made{.calls = so_far() - before};
  made.packets = static_cast<double>(net.world.counters().sent - sent_before) / static_cast<double>(made.calls);
  net.world.set_links({});
  for (const auto& caller : callers_of_all) caller->over = true;
  net.world.run_for(20s);
  const Shepherd inside(net[0].monitor());
  callers_of_all.clear();
  return made;
}
double share(std::string_view stack, double loss, std::size_t callers, std::size_t size = 0) {
  const double kept = static_cast<double>(rate(stack, loss, callers, size).calls) /
                      static_cast<double>(rate(stack, 0, callers, size).calls);
  std::printf("%zu bytes, callers: %zu: %.*s keeps %.2f\n", size, callers, static_cast<int>(stack.size()), stack.data(),
              kept);
  return kept;
}

TEST(LossRateTest, half_the_rate_is_left_where_a_tenth_of_all_packets_is_lost) {
  for (const std::string_view stack : {kLayered, kMonolithic}) {
    for (const std::size_t callers : {1U, 8U})
      EXPECT_GE(share(stack, 0.1, callers), 0.5) << stack << ", callers: " << callers;
  }
}

/// Both send the same packets, but lose different ones: by chance one of them makes a hundredth more calls.
TEST(LossRateTest, layers_lose_no_more_than_one_protocol_where_three_tenths_are_lost) {
  for (const std::size_t size : {0U, 16000U}) {
    for (const std::size_t callers : {1U, 8U}) {
      std::uint64_t layered = 0;
      std::uint64_t monolithic = 0;
      for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        layered += rate(kLayered, 0.3, callers, size, seed).calls;
        monolithic += rate(kMonolithic, 0.3, callers, size, seed).calls;
      }
      const std::uint64_t calm = 4 * rate(kLayered, 0, callers, size).calls;
      std::printf("%zu bytes, callers: %zu: layered %.3f, M_RPC %.3f\n", size, callers,
                  static_cast<double>(layered) / static_cast<double>(calm),
                  static_cast<double>(monolithic) / static_cast<double>(calm));
      EXPECT_GE(static_cast<double>(layered), 0.98 * static_cast<double>(monolithic))
          << size << " bytes, callers: " << callers;
      EXPECT_GE(layered, calm / (size == 0 ? 5 : 10)) << size << " bytes, callers: " << callers;
    }
  }
}

/// A share of one half cannot be reached (docs/PROTOCOLS.md): seven of ten such requests lose a packet.
TEST(LossRateTest, large_requests_are_recovered_without_long_waits_where_a_tenth_of_all_packets_is_lost) {
  for (const std::size_t callers : {1U, 8U}) {
    EXPECT_GE(share(kLayered, 0.1, callers, 16000), 0.39) << callers;
    EXPECT_GE(share(kMonolithic, 0.1, callers, 16000), 0.37) << callers;
  }
}

/// Such a call has twelve packets, each sent 1 1/9 times on average. The remaining packets ask for lost ones.
TEST(LossRateTest, a_large_request_whose_reply_is_lost_is_not_sent_again) {
  for (const std::size_t callers : {1U, 8U}) EXPECT_LE(rate(kLayered, 0.1, callers, 16000).packets, 15.5) << callers;
}

}  // namespace
}  // namespace lrpc::netrpc
