// A client that breaks the rules of growth in its requests (LRPC §5.2).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "holdings.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/call/gates.h"
#include "raw_binding.h"

namespace testing_lrpc {
namespace {

namespace shim = lrpc::shim;
using lrpc::UniqueFd;
using namespace std::chrono_literals;

/// NapFor blocks until `let_go`.
struct Napping : ConformanceService {
  void NapFor(CallContext&, std::uint32_t) {
    inside = true;
    while (!let_go) std::this_thread::sleep_for(1ms);
  }
  std::atomic<bool> inside{false};
  std::atomic<bool> let_go{false};
};

/// A server in this process, and a binding to it without the client library.
class HostileGrowth : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = shim::make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_TRUE(Conformance::serve_over(server_, std::move(ends->first), service_));
    socket_ = std::move(ends->second);
    client_ = std::make_unique<RawBinding>(socket_.get(), shim::Gate::adaptive);
    ASSERT_TRUE(client_->call(0, 0));
  }
  std::uint64_t grown() { return server_.statistics().astacks_grown; }
  std::uint64_t refused() { return server_.statistics().growths_refused; }
  /// Waits until the clerk has read everything that was sent on the bell before.
  void clerk_has_looked() {
    auto line = shim::ask_for_growth(client_->bell(), {.astack_class = 0xffff, .place = 0, .count = 1});
    ASSERT_TRUE(line);
    auto answer = shim::receive_growth(line->get(), kPatience);
    ASSERT_TRUE(answer && answer->has_value());
    ASSERT_EQ((*answer)->count, 0U);
  }
  UniqueFd grow(std::uint16_t place, std::uint16_t count = 4) {
    auto line = shim::ask_for_growth(client_->bell(), {.astack_class = 0, .place = place, .count = count});
    EXPECT_TRUE(line);
    auto answer = shim::receive_growth(line->get(), kPatience);
    EXPECT_TRUE(answer && answer->has_value() && (*answer)->count == count);
    region_fd_ = (*answer)->region.release();
    return *std::move(line);
  }
  shim::Region map(std::uint16_t count = 4) {
    lrpc::AStackClass declared = Conformance::kPdl.classes[0];
    declared.count = count;
    auto region = shim::Region::map(std::move(region_fd_), *shim::RegionLayout::of({&declared, 1}));
    EXPECT_TRUE(region);
    return *std::move(region);
  }
  /// Rings and waits as the protocol demands. Returns the status, if there is one.
  std::optional<std::uint16_t> call(const shim::Region& region, std::uint64_t generation, std::uint16_t procedure,
                                    std::chrono::milliseconds patience = kPatience) {
    shim::AStackHead& head = *region.astack(0).head;
    (void)shim::ring_handoff(head, shim::CallWord::called(generation, procedure, shim::kNoProcessor));
    shim::futex_wake(head.word, shim::Sleeper::estack);
    shim::ring_bell(client_->bell());
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
      const shim::CallWord word = shim::load_word(head);
      if (word.is(shim::Turn::returned, generation)) return word.status();
      std::this_thread::sleep_for(1ms);
    }
    return std::nullopt;
  }

  Napping service_;
  lrpc::Server server_;
  UniqueFd socket_;
  UniqueFd region_fd_;
  std::unique_ptr<RawBinding> client_;
};

TEST_F(HostileGrowth, absurd_requests_are_refused_and_leave_nothing) {
  const Holdings before = Holdings::of();
  const auto classes = static_cast<std::uint16_t>(Conformance::kPdl.classes.size());
  for (const shim::GrowthRequest& request : {
           shim::GrowthRequest{.astack_class = classes, .place = 0, .count = 1},
           shim::GrowthRequest{.astack_class = 0xffff, .place = 0, .count = 1},
           shim::GrowthRequest{.astack_class = 0, .place = shim::kMostSecondaryRegions, .count = 1},
           shim::GrowthRequest{.astack_class = 0, .place = 0xffff, .count = 0xffff},
           shim::GrowthRequest{.astack_class = 0, .place = 0, .count = 0},
       }) {
    auto line = shim::ask_for_growth(client_->bell(), request);
    ASSERT_TRUE(line);
    auto answer = shim::receive_growth(line->get(), kPatience);
    ASSERT_TRUE(answer && answer->has_value());
    EXPECT_EQ((*answer)->count, 0U);
  }
  EXPECT_EQ(refused(), 5U);
  EXPECT_EQ(grown(), 0U);
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }));
  EXPECT_EQ(client_->call(0, 0), 0);
}

TEST_F(HostileGrowth, more_than_there_is_room_for_is_cut_down) {
  auto line = shim::ask_for_growth(client_->bell(), {.astack_class = 0, .place = 3, .count = 0xffff});
  ASSERT_TRUE(line);
  auto answer = shim::receive_growth(line->get(), kPatience);
  ASSERT_TRUE(answer && answer->has_value());
  EXPECT_EQ((*answer)->count, shim::kMostAStacksInSecondary);
}

TEST_F(HostileGrowth, lines_that_are_none_are_dropped) {
  const Holdings before = Holdings::of();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const UniqueFd read_end(pipe_ends[0]);
  const UniqueFd write_end(pipe_ends[1]);
  const UniqueFd memory(memfd_create("no line", MFD_CLOEXEC));
  for (const int fd : {read_end.get(), write_end.get(), memory.get()})
    ASSERT_TRUE(shim::offer_on_bell(client_->bell(), shim::BellMessage::grow, fd));
  const char kind = static_cast<char>(shim::BellMessage::grow);
  ASSERT_EQ(send(client_->bell(), &kind, 1, 0), 1);  // with no descriptor at all
  // Lines without a request, and with garbage.
  for (const std::string& garbage : {std::string(), std::string("x"), std::string(7, '\0'), std::string(500, '\1')}) {
    auto ends = shim::make_socket_pair();
    ASSERT_TRUE(ends);
    if (!garbage.empty()) {
      ASSERT_EQ(send(ends->first.get(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
    }
    ASSERT_TRUE(shim::offer_on_bell(client_->bell(), shim::BellMessage::grow, ends->second.get()));
  }
  clerk_has_looked();
  EXPECT_EQ(grown(), 0U);
  EXPECT_EQ(client_->call(0, 0), 0);
  // Those are the descriptors made above. The clerk may have read the last line without having closed it yet.
  EXPECT_TRUE(eventually([&] { return Holdings::of().descriptors <= before.descriptors + 3; }));
}

TEST_F(HostileGrowth, a_place_is_taken_once) {
  const UniqueFd line = grow(2);
  auto again = shim::ask_for_growth(client_->bell(), {.astack_class = 0, .place = 2, .count = 4});
  ASSERT_TRUE(again);
  auto answer = shim::receive_growth(again->get(), kPatience);
  EXPECT_TRUE(!answer || (answer->has_value() && (*answer)->count == 0));
  EXPECT_TRUE(eventually([&] { return grown() == 4; }));
  EXPECT_EQ(call(map(), 1, 0), 0);
}

TEST_F(HostileGrowth, a_client_that_talks_on_its_line_loses_the_region) {
  const UniqueFd line = grow(0);
  EXPECT_EQ(grown(), 4U);
  for (int i = 0; i < 100; ++i) (void)send(line.get(), "more", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
  EXPECT_TRUE(eventually([&] { return grown() == 0; }));
  EXPECT_EQ(client_->call(0, 0), 0);
}

TEST_F(HostileGrowth, a_region_that_was_given_back_while_a_call_runs_there_goes_when_the_call_has_ended) {
  UniqueFd line = grow(0);
  const shim::Region region = map();
  std::uint16_t nap = 0;
  while (Conformance::kPdl.procedures[nap].name != "NapFor") ++nap;
  ASSERT_EQ(Conformance::kPdl.procedures[nap].astack_class, 0);
  std::thread caller([&] { EXPECT_TRUE(call(region, 1, nap)); });
  EXPECT_TRUE(eventually([&] { return service_.inside.load(); }));
  line.reset();
  std::this_thread::sleep_for(20ms);
  service_.let_go = true;
  caller.join();
  EXPECT_TRUE(eventually([&] { return grown() == 0; }));
  // Later calls are not served, or are refused; nobody else notices.
  const auto late = call(region, 2, 0, 100ms);
  EXPECT_TRUE(!late || *late != 0);
  EXPECT_EQ(client_->call(0, 0), 0);
}

TEST_F(HostileGrowth, a_client_that_takes_and_gives_back_without_end_leaves_nothing) {
  const Holdings before = Holdings::of();
  for (int i = 0; i < 300; ++i) {
    auto line = shim::ask_for_growth(client_->bell(),
                                     {.astack_class = 0, .place = static_cast<std::uint16_t>(i % 16), .count = 64});
    if (!line) std::this_thread::sleep_for(1ms);  // the bell is full
  }
  EXPECT_TRUE(eventually([&] { return grown() == 0 && Holdings::of().within(before); }));
  // The hostile client may lose its own binding by that, but no other.
  client_ = std::make_unique<RawBinding>(socket_.get(), shim::Gate::adaptive);
  EXPECT_EQ(client_->call(0, 0), 0);
}

TEST_F(HostileGrowth, a_client_that_gives_up_before_the_answer_was_refused_nothing) {
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const std::string request("\1\0\0\0\0\4\0", 7);  // four A-stacks of class 0, in place 0
  ASSERT_EQ(send(ends->first.get(), request.data(), request.size(), 0), 7);
  ends->first.reset();
  ASSERT_TRUE(shim::offer_on_bell(client_->bell(), shim::BellMessage::grow, ends->second.get()));
  clerk_has_looked();
  EXPECT_EQ(refused(), 1U) << "only the request of clerk_has_looked()";
  EXPECT_EQ(grown(), 0U);
}

TEST_F(HostileGrowth, a_client_that_is_gone_with_regions_leaves_nothing) {
  const Holdings before = Holdings::of();
  {
    std::vector<UniqueFd> lines;
    for (std::uint16_t place = 0; place < 4; ++place) lines.push_back(grow(place));
    EXPECT_EQ(call(map(), 1, 0), 0);
    client_->hang_up();
    EXPECT_TRUE(eventually([&] { return grown() == 0; }));
  }
  client_ = std::make_unique<RawBinding>(socket_.get(), shim::Gate::adaptive);
  EXPECT_EQ(client_->call(0, 0), 0);
  EXPECT_TRUE(eventually([&] { return Holdings::of().regions == before.regions; }));
}

}  // namespace
}  // namespace testing_lrpc
