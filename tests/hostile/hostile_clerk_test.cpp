// A clerk that breaks the rules of growth in its answers (LRPC §5.2).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bad_packets.h"
#include "conformance_service.h"
#include "holdings.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "raw_binding.h"

namespace testing_lrpc {
namespace {

namespace shim = lrpc::shim;
using lrpc::Errc;
using lrpc::UniqueFd;
using namespace std::chrono_literals;

/// Binds one client without the server library, serves no call, and answers requests for A-stacks by `answer`.
class HostileClerk {
 public:
  using Answer = std::function<void(int line, const shim::GrowthRequest&)>;
  explicit HostileClerk(Answer answer) : answer_(std::move(answer)) {
    auto ends = shim::make_socket_pair();
    auto bells = shim::make_socket_pair();
    if (!ends || !bells) throw std::runtime_error("socketpair");
    socket_ = std::move(ends->first);
    importer = std::move(ends->second);
    bell_ = std::move(bells->first);
    clients_bell_ = std::move(bells->second);
    thread_ = std::thread([this] { run(); });
  }
  ~HostileClerk() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] int asked() const { return asked_; }
  UniqueFd importer;

 private:
  void run() {
    auto request = shim::receive_message(socket_.get(), kPatience);
    if (!request || !request->has_value()) return;
    auto answer = conformance_answer((*request)->request);
    auto region = shim::create_region(conformance_layout());
    if (!region) return;
    answer.fds.push_back(*std::move(region));
    answer.fds.push_back(std::move(clients_bell_));
    (void)shim::send_message(socket_.get(), answer);
    answer.fds.clear();
    std::vector<shim::PeerSocket> lines;
    while (!stop_) {
      pollfd entry{bell_.get(), POLLIN, 0};
      if (poll(&entry, 1, 10) <= 0) continue;
      auto news = shim::receive_bell(bell_.get());
      if (news.code() == Errc::peer_gone) return;
      if (!news || !news->has_value() || (*news)->message != shim::BellMessage::grow) continue;
      const auto growth = shim::take_growth_request((*news)->offered.get());
      if (!growth) continue;
      ++asked_;
      answer_((*news)->offered.get(), *growth);
      lines.push_back(std::move((*news)->offered));
    }
  }

  const Answer answer_;
  UniqueFd socket_;
  UniqueFd bell_;
  UniqueFd clients_bell_;
  std::atomic<bool> stop_{false};
  std::atomic<int> asked_{0};
  std::thread thread_;
};

UniqueFd region_of(std::uint16_t astack_class, std::uint16_t count) {
  lrpc::AStackClass declared = Conformance::kPdl.classes[astack_class];
  declared.count = count;
  return *shim::create_region(*shim::RegionLayout::of({&declared, 1}));
}

void send_bytes(int line, const std::string& bytes, const std::vector<int>& fds) {
  (void)send_packet(line, std::as_bytes(std::span(bytes)), fds);
}
/// An answer as in the protocol: kind, count, refusal.
std::string answer_bytes(std::uint16_t count, std::uint16_t refusal) {
  return {2, static_cast<char>(count), static_cast<char>(count >> 8), static_cast<char>(refusal),
          static_cast<char>(refusal >> 8)};
}

struct Wrong {
  const char* name;
  HostileClerk::Answer answer;
};

class HostileClerkTest : public testing::TestWithParam<Wrong> {};

void meet_hostile_clerk(const HostileClerk::Answer& answer) {
  HostileClerk clerk(answer);
  auto client = Conformance::Client::import_over(
      std::move(clerk.importer), {.supply = lrpc::AStackSupply::grow, .grown_idle = 20ms, .call_timeout = 50ms});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<decltype(client->start().Null())> calls;
  const std::uint16_t astacks = Conformance::kPdl.classes[0].count;
  for (std::uint16_t i = 0; i < astacks; ++i) calls.push_back(client->start().Null());
  const Holdings before = Holdings::of();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client->Null().code(), Errc::call_aborted);
  EXPECT_TRUE(eventually([&] { return clerk.asked() >= 1; }));
  EXPECT_EQ(Holdings::of().regions, before.regions);
  for (auto& call : calls) EXPECT_EQ(call.finish().code(), Errc::call_aborted);
}

TEST_P(HostileClerkTest, costs_its_client_no_more_than_waiting_and_leaves_nothing) {
  meet_hostile_clerk(GetParam().answer);
  const Holdings before = Holdings::of();
  meet_hostile_clerk(GetParam().answer);
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }));
}

UniqueFd unsealed(const UniqueFd& like) {
  UniqueFd fd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  (void)!ftruncate(fd.get(), lseek(like.get(), 0, SEEK_END));
  return fd;
}

INSTANTIATE_TEST_SUITE_P(
    answers, HostileClerkTest,
    testing::Values(
        Wrong{"silence", [](int, const shim::GrowthRequest&) {}},
        Wrong{"a_hang_up", [](int line, const shim::GrowthRequest&) { shutdown(line, SHUT_RDWR); }},
        Wrong{"a_refusal",
              [](int line, const shim::GrowthRequest&) { shim::refuse_growth(line, Errc::limit_reached); }},
        Wrong{"garbage", [](int line, const shim::GrowthRequest&) { send_bytes(line, "what?", {}); }},
        Wrong{"too_much", [](int line, const shim::GrowthRequest&) { send_bytes(line, std::string(100, '\2'), {}); }},
        Wrong{"no_descriptor",
              [](int line, const shim::GrowthRequest& asked) { send_bytes(line, answer_bytes(asked.count, 0), {}); }},
        Wrong{"a_refusal_with_a_descriptor",
              [](int line, const shim::GrowthRequest& asked) {
                const UniqueFd fd = region_of(asked.astack_class, asked.count);
                send_bytes(line, answer_bytes(0, 41), {fd.get()});
              }},
        Wrong{"a_region_that_is_not_sealed",
              [](int line, const shim::GrowthRequest& asked) {
                const UniqueFd fd = unsealed(region_of(asked.astack_class, asked.count));
                (void)shim::grant_growth(line, asked.count, fd.get());
              }},
        Wrong{"a_region_that_is_too_small",
              [](int line, const shim::GrowthRequest& asked) {
                const UniqueFd fd = region_of(asked.astack_class, 1);
                (void)shim::grant_growth(line, 64, fd.get());
                (void)shim::grant_growth(line, asked.count, fd.get());
              }},
        Wrong{"a_region_of_another_size",
              [](int line, const shim::GrowthRequest& asked) {
                lrpc::AStackClass declared{.image_size = 4000, .tail_size = 4096, .count = asked.count};
                const UniqueFd fd = *shim::create_region(*shim::RegionLayout::of({&declared, 1}));
                (void)shim::grant_growth(line, asked.count, fd.get());
              }},
        Wrong{"more_than_was_asked_for",
              [](int line, const shim::GrowthRequest& asked) {
                const auto more = static_cast<std::uint16_t>(asked.count + 1);
                const UniqueFd fd = region_of(asked.astack_class, more);
                (void)shim::grant_growth(line, more, fd.get());
              }},
        Wrong{"two_descriptors",
              [](int line, const shim::GrowthRequest& asked) {
                const UniqueFd fd = region_of(asked.astack_class, asked.count);
                send_bytes(line, answer_bytes(asked.count, 0), {fd.get(), fd.get()});
              }},
        Wrong{"three_descriptors",
              [](int line, const shim::GrowthRequest& asked) {
                const UniqueFd fd = region_of(asked.astack_class, asked.count);
                send_bytes(line, answer_bytes(asked.count, 0), {fd.get(), fd.get(), fd.get()});
              }},
        Wrong{"a_pipe",
              [](int line, const shim::GrowthRequest& asked) {
                int ends[2];
                if (pipe(ends) != 0) return;
                (void)shim::grant_growth(line, asked.count, ends[0]);
                close(ends[0]);
                close(ends[1]);
              }}),
    [](const auto& tested) { return tested.param.name; });

TEST(HostileClerkRegion, scribbled_on_costs_the_calls_there_and_nothing_else) {
  // It grants a valid region, and then writes garbage into its call words.
  std::atomic<bool> stop{false};
  std::thread scribbler;
  {
    HostileClerk clerk([&](int line, const shim::GrowthRequest& asked) {
      UniqueFd fd = region_of(asked.astack_class, asked.count);
      (void)shim::grant_growth(line, asked.count, fd.get());
      lrpc::AStackClass declared = Conformance::kPdl.classes[asked.astack_class];
      declared.count = asked.count;
      if (scribbler.joinable()) return;
      scribbler =
          std::thread([&stop, region = *shim::Region::map(std::move(fd), *shim::RegionLayout::of({&declared, 1})),
                       count = asked.count] {
            for (std::uint64_t word = 1; !stop; word = word * 6364136223846793005U + 1442695040888963407U) {
              for (std::uint32_t i = 0; i < count; ++i) region.astack(i).head->word.store(word >> (i % 8));
            }
          });
    });
    auto client = Conformance::Client::import_over(
        std::move(clerk.importer), {.supply = lrpc::AStackSupply::grow, .grown_idle = 20ms, .call_timeout = 200ms});
    ASSERT_TRUE(client) << client.error().message();
    std::vector<decltype(client->start().Null())> calls;
    const std::uint16_t astacks = Conformance::kPdl.classes[0].count;
    for (std::uint16_t i = 0; i < astacks; ++i) calls.push_back(client->start().Null());
    EXPECT_TRUE(eventually([&] {
      (void)client->Null();
      return clerk.asked() >= 1;
    }));
    for (int i = 0; i < 5; ++i) (void)client->Null();  // any result is right, but the call must end
    for (auto& call : calls) EXPECT_FALSE(call.finish());
  }
  stop = true;
  ASSERT_TRUE(scribbler.joinable()) << "it was never asked";
  scribbler.join();
}

}  // namespace
}  // namespace testing_lrpc
