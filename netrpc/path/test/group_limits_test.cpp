// What calls to groups cannot carry, and the limits of their number.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "group_fixture.h"
#include "lrpc/client.h"
#include "network_path.client.h"

namespace testing_netpath {
namespace {

TEST_F(Groups, refuse_calls_with_handles_and_send_nothing) {
  auto client = import();
  ASSERT_TRUE(client);
  std::atomic<int> sent{0};
  network_.tamper([&](std::uint16_t command, std::vector<std::byte>&) { sent += command == Network::kGroupCall; });
  const auto begun = client->Begin(1);
  EXPECT_EQ(begun.code(), Errc::not_supported);
  EXPECT_EQ(begun.error().text, "handles do not go to groups, import from one host: procedure Replica.Begin");
  EXPECT_EQ(client->Count(Replica::Tally{1}).code(), Errc::not_supported);
  EXPECT_EQ(client->Forget(Replica::Tally{1}).code(), Errc::not_supported);
  auto started = client->start().Begin(1);
  EXPECT_TRUE(started.ready() && started.wait_for(std::chrono::nanoseconds(0)));
  const auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  const auto watched = (*queue)->watch(started);
  EXPECT_EQ(watched.code(), Errc::invalid_argument);
  EXPECT_EQ(watched.error().text, "this call was refused before it was sent: finish() says why");
  const auto begun_later = started.finish();
  EXPECT_EQ(begun_later.code(), Errc::not_supported);
  EXPECT_EQ(begun_later.error().text, begun.error().text);
  (void)client->start().Begin(1);
  EXPECT_EQ(client->start().Count(Replica::Tally{1}).finish().code(), Errc::not_supported);
  EXPECT_EQ(sent, 0);
  EXPECT_EQ(*client->Add(40, 2), 42) << "the others go on";
  network_.tamper(nullptr);
  auto one = import("files@" + name(0));
  ASSERT_TRUE(one);
  const auto tally = one->Begin(6);
  ASSERT_TRUE(tally) << tally.error().message();
  EXPECT_EQ(*one->Count(*tally), 7U);
}

/// A client that speaks to the network domain directly bypasses the checks of the library.
TEST_F(Groups, members_execute_no_call_with_handles_whoever_sends_it) {
  namespace wire = lrpc::netpath::NetworkPath;
  auto network = wire::Client::import("lrpc.network", {.nameserver = here_->socket()});
  ASSERT_TRUE(network);
  const auto& id = Replica::kPdl.interface;
  const auto bound =
      network->Bind("files", "replicas", id.name, id.major, id.minor, id.hash, 0, 1, "small", 1, "small");
  ASSERT_TRUE(bound);
  EXPECT_TRUE(bound->to_group);
  std::atomic<std::size_t> arrived{0};
  network_.tamper([&](std::uint16_t command, std::vector<std::byte>&) { arrived += command == Network::kGroupCall; });
  std::vector<std::byte> room(wire::layout::kCallAll_replies.bound);
  const std::span<std::byte> small = std::span<std::byte>(room).first(16'384);
  const std::array<std::byte, 8> image{std::byte{1}};
  const auto& procedures = Replica::kPdl.procedures;
  std::size_t with_handles = 0;
  for (std::size_t i = 0; i < procedures.size(); ++i) {
    if (!procedures[i].handles) continue;
    ++with_handles;
    const auto number = static_cast<std::uint16_t>(i);
    lrpc::Buffer results(small);
    const std::size_t size = procedures[i].name == "Begin" ? 4 : 8;
    const auto called = network->Call(bound->path, number, 0, std::span(image).first(size), results);
    ASSERT_TRUE(called) << called.error().message();
    EXPECT_EQ(lrpc::client::Call::failure(called->status), Errc::not_supported) << procedures[i].name;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(room.data()), results.size()),
              "handles do not go to groups, import from one host");
    lrpc::Buffer replies(room);
    const auto all = network->CallAll(bound->path, number, 0, std::span(image).first(size), replies);
    ASSERT_TRUE(all) << all.error().message();
    EXPECT_EQ(lrpc::client::Call::failure(all->status), Errc::call_failed);
    EXPECT_TRUE(network->Send(bound->path, number, std::span(image).first(size)));
  }
  EXPECT_EQ(with_handles, 3U);
  lrpc::Buffer results(small);
  EXPECT_TRUE(network->Call(bound->path, 0, 0, image, results));
  EXPECT_TRUE(eventually([&] { return arrived == (3 * with_handles + 1) * kMembers; }));
  for (std::size_t i = 0; i < kMembers; ++i) {
    network_.cut(address(i));  // returns when every command that has arrived was answered
    EXPECT_EQ(members_[i].service.calls, 1U) << "Add alone";
  }
  network_.tamper(nullptr);
}

TEST_F(Groups, count_as_many_bindings_as_they_have_members) {
  here_->stop_broker();
  here_->start_broker({.max_paths = 5, .keepalive = kKeepalive});  // a user may have half of them
  auto first = import();
  ASSERT_TRUE(first) << first.error().message();
  const auto second = import("files@" + name(0));
  EXPECT_EQ(second.code(), Errc::limit_reached) << second.error().message();
  first = Errc::name_unknown;
  EXPECT_TRUE(eventually([&] { return import("files@" + name(0)).has_value(); }));
}

/// Each member's reply takes memory until the call ends, so a call to a large group counts as several.
TEST_F(Groups, calls_count_as_many_as_the_group_has_members) {
  constexpr std::size_t kLarge = 64;
  constexpr std::size_t kMost = 1024 / 2 / kLarge;  // for one user
  std::vector<HostAddress> all;
  for (std::size_t i = 0; i < kLarge; ++i) all.push_back(address(i));  // only three of them exist
  here_->wire().set_members(all);
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  auto second = import();  // because each client has A-stacks for five calls
  ASSERT_TRUE(second) << second.error().message();
  auto single = import("files@" + name(0));
  ASSERT_TRUE(single) << single.error().message();
  struct Held {
    std::atomic<std::size_t> arrived{0};
    std::atomic<bool> released{false};
  };
  const auto held = std::make_shared<Held>();  // shared, because the network uses it in calls that outlive the test
  network_.tamper([held](std::uint16_t command, std::vector<std::byte>&) {
    if (command != Network::kGroupCall || held->released || ++held->arrived > kMost) return;
    while (!held->released) std::this_thread::sleep_for(milliseconds(1));
  });
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kMost; ++i)
    callers.emplace_back([&, &one = i % 2 == 0 ? *client : *second] { EXPECT_TRUE(one.Add(1, 2)); });
  EXPECT_TRUE(eventually([&] { return held->arrived == kMost; }));
  EXPECT_EQ(client->Add(1, 2).code(), Errc::limit_reached);
  EXPECT_EQ(client->all().Add(1, 2).code(), Errc::limit_reached);
  EXPECT_EQ(single->Add(1, 2).code(), Errc::limit_reached) << "this user has as many as one may have";
  held->released = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(client->Add(1, 2));
  EXPECT_TRUE(single->Add(1, 2));
  network_.tamper(nullptr);
}

}  // namespace
}  // namespace testing_netpath
