// Truly remote calls, end to end through generated stubs: what they carry, and how they are waited for.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "crowd.client.h"
#include "crowd.server.h"
#include "remote_fixture.h"
#include "world.h"

namespace testing_netpath {
namespace {

TEST_F(TwoHosts, call_each_other_through_ordinary_stubs) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  const auto sum = client->Add(20, 22);
  ASSERT_TRUE(sum) << sum.error().message();
  EXPECT_EQ(*sum, 42);
  EXPECT_TRUE(client->Null());
  EXPECT_EQ(here_->broker().statistics().paths, 1U);
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
}

/// Records whether the broker waits for the procedure as a caller that yields its processor, rather than as a caller
/// that has started the call and sleeps.
struct HearsHowItIsCalled : ConformanceService {
  void Null(lrpc::CallContext& context) { handed_over = handed_over || context.caller_yields(); }
  std::atomic<bool> handed_over{false};
};

TEST_F(TwoHosts, serve_a_call_by_a_caller_that_may_hand_its_processor_over) {
  HearsHowItIsCalled service;
  lrpc::Server server(lrpc::ServerOptions{.nameserver = there_->socket()});
  ASSERT_TRUE(Conformance::export_to(server, "hearing", service));
  auto client = import("hearing@10.0.0.2");
  ASSERT_TRUE(client) << client.error().message();
  // Not for each call: a caller that yields in vain stops yielding for a while, and a caller that polls need not yield.
  EXPECT_TRUE(eventually([&] { return client->Null().has_value() && service.handed_over; }));
}

struct Adder {
  std::int32_t Add(lrpc::CallContext& /*context*/, std::int32_t a, std::int32_t b) { return a + b; }
};

TEST_F(TwoHosts, start_as_many_calls_as_the_interface_has_astacks) {
  Adder adder;
  ASSERT_TRUE(Crowd::export_to(*server_, "crowd", adder));
  auto client = Crowd::Client::import("crowd@10.0.0.2", import_options());
  ASSERT_TRUE(client) << client.error().message();
  std::vector<decltype(client->start().Add(1, 1))> sums;
  for (int i = 0; i < 80; ++i) sums.push_back(client->start().Add(i, 1));
  for (int i = 0; i < 80; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + 1);
}

/// Returns the error with which the libraries report that a call could not be made.
struct LacksAStacks : ConformanceService {
  lrpc::Result<std::int32_t> Add(lrpc::CallContext&, std::int32_t, std::int32_t) {
    ++times;
    return lrpc::Errc::no_astack;
  }
  std::atomic<int> times{0};
};

TEST_F(TwoHosts, execute_once_what_fails_for_want_of_an_astack_of_its_own) {
  LacksAStacks service;
  lrpc::Server server(lrpc::ServerOptions{.nameserver = there_->socket()});
  ASSERT_TRUE(Conformance::export_to(server, "lacking", service));
  auto client = import("lacking@10.0.0.2");
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(1, 2).code(), lrpc::Errc::call_failed);
  EXPECT_EQ(service.times, 1);
}

TEST_F(TwoHosts, carry_every_kind_of_parameter_as_within_one_machine) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  std::array<std::byte, 200> block{};
  block[0] = std::byte{9};
  EXPECT_TRUE(client->BigIn(block));
  EXPECT_TRUE(client->BigInOut(block));
  EXPECT_EQ(block[199], std::byte{9});
  const auto integers = client->Integers(-1, 2, -3, 4, -5, 6, -7, 8);
  ASSERT_TRUE(integers);
  EXPECT_EQ(integers->a2, -1);
  EXPECT_EQ(integers->h2, 8U);
  const auto floats = client->Floats(1.5F, -2.25);
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->b2, -2.25);
  EXPECT_FALSE(client->Flip(true).value());
  EXPECT_EQ(client->NextColour(Conformance::Colour::Red).value(), Conformance::Colour::Green);
  EXPECT_EQ(client->Halve(50, -10).value().negated, 10);
  EXPECT_EQ(client->Halve(101, 0).code(), Errc::argument_out_of_range);
  Conformance::Shape shape{
      .name = "tri", .colour = Conformance::Colour::Blue, .corners = {}, .filled = true, .share = 3};
  shape.corners[2] = {5, 6.5};
  EXPECT_EQ(client->Mirror(shape).value(), 3);
  EXPECT_EQ(shape.corners[2].x, -5);
  EXPECT_EQ(shape.name.view(), "tri");
}

TEST_F(TwoHosts, name_the_procedure_and_the_argument_that_are_refused) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  const auto too_long = "argument too long: Conformance.Greet: 'name' is longer than 255 bytes";
  EXPECT_EQ(client->Greet(std::string(256, 'x')).error().message(), too_long);
  EXPECT_EQ(client->start().Greet(std::string(256, 'x')).finish().error().message(), too_long);
  EXPECT_EQ(client->Throw().error().message(), "call failed: an exception escaped the procedure: Conformance.Throw");
}

TEST_F(TwoHosts, finish_started_calls_that_outlive_their_client) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  auto sum = client->start().Add(40, 2);
  ASSERT_TRUE(eventually([&] { return sum.ready(); }));
  auto nap = client->start().SleepFor(100);
  { auto dropped = client->start().SleepFor(100); }
  auto moved = std::make_unique<decltype(nap)>(client->start().SleepFor(100));
  { const auto gone = *std::move(client); }
  EXPECT_EQ(sum.finish().value(), 42);
  EXPECT_TRUE(nap.ready());
  moved.reset();
  const Errc end = nap.finish().code();
  EXPECT_TRUE(end == Errc::call_failed || end == Errc::binding_revoked || end == Errc::ok)
      << lrpc::describe(end) << ": it may have returned by then, or not have been sent";
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0; }));
}

TEST_F(TwoHosts, tell_a_queue_of_a_started_call_whose_client_goes) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  // Shared, because held commands may outlive this test.
  const auto released = std::make_shared<std::atomic<bool>>(false);
  network_.tamper([released](std::uint16_t command, std::vector<std::byte>&) {
    while (command == 2 && !*released) std::this_thread::sleep_for(milliseconds(1));
  });
  auto held = client->start().Null();
  bool told = false;
  EXPECT_TRUE((*queue)->watch(held, [&] { told = true; }));
  { const auto gone = *std::move(client); }
  EXPECT_TRUE(eventually([&] {
    (void)(*queue)->wait(milliseconds(10));
    return told;
  }));
  *released = true;
  const Errc end = held.finish().code();
  EXPECT_TRUE(end == Errc::call_failed || end == Errc::binding_revoked) << lrpc::describe(end);
}

TEST_F(TwoHosts, carry_strings_and_bytes_up_to_their_bounds) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Greet("").value().view(), "hello, ");
  EXPECT_EQ(client->Greet(std::string(255, 'x')).value().view(), "hello, " + std::string(255, 'x'));
  EXPECT_EQ(client->Greet(std::string(256, 'x')).code(), Errc::argument_too_long);
  const std::string long_one(2000, 'a');
  EXPECT_EQ(client->Concatenate(long_one, std::string(2000, 'b')).value().view(), long_one + std::string(2000, 'b'));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{1400}, std::size_t{1500}, std::size_t{12000}}) {
    const auto data = some_bytes(size);
    std::uint64_t sum = 0;
    for (const std::byte b : data) sum += std::to_integer<std::uint64_t>(b);
    EXPECT_EQ(client->Sum(data).value(), sum) << size;
    EXPECT_EQ(client->SumInPlace(data).value(), sum) << size;
    auto turned = data;
    lrpc::Buffer buffer(turned, size);
    ASSERT_TRUE(client->Reverse(buffer)) << size;
    EXPECT_TRUE(std::ranges::equal(turned, std::vector(data.rbegin(), data.rend()))) << size;
    std::vector<std::byte> room(size);
    lrpc::Buffer filled(room);
    ASSERT_TRUE(client->Fill(static_cast<std::uint32_t>(size), 7, filled));
    EXPECT_EQ(filled.size(), size);
    EXPECT_TRUE(std::ranges::all_of(room, [](std::byte b) { return b == std::byte{7}; }));
  }
  std::vector<std::byte> little(10);
  lrpc::Buffer too_small(little);
  EXPECT_EQ(client->Fill(11, 7, too_small).code(), Errc::result_too_long);
  EXPECT_EQ(client->Sum(some_bytes(12001)).code(), Errc::argument_too_long);
}

TEST_F(TwoHosts, bring_raised_errors_and_failures_back) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Check(21).value(), 42U);
  const auto big = client->Check(101);
  ASSERT_NE(big.raised<Conformance::TooBig>(), nullptr);
  EXPECT_EQ(big.raised<Conformance::TooBig>()->limit, 100U);
  EXPECT_EQ(big.raised<Conformance::TooBig>()->what.view(), "value");
  const auto unlucky = client->Check(13);
  ASSERT_NE(unlucky.raised<Conformance::Refused>(), nullptr);
  EXPECT_EQ(unlucky.raised<Conformance::Refused>()->reason.view(), "unlucky");
  EXPECT_EQ(client->Throw().code(), Errc::exception_escaped);
  EXPECT_EQ(client->BadResult().code(), Errc::bad_result);
  EXPECT_EQ(client->Advance(Conformance::Counter{77}, 1).code(), Errc::bad_handle);
  EXPECT_TRUE(client->Null()) << "a failed call harms no later one";
}

TEST_F(TwoHosts, keep_the_handles_of_each_client_apart_and_run_them_down) {
  auto client = import();
  auto other = import();
  ASSERT_TRUE(client && other);
  const auto counter = client->Open(40);
  ASSERT_TRUE(counter);
  EXPECT_EQ(client->Advance(*counter, 2).value(), 42);
  EXPECT_EQ(other->Advance(*counter, 2).code(), Errc::bad_handle);
  ASSERT_TRUE(other->Open(1));
  ASSERT_TRUE(other->Open(2));
  EXPECT_EQ(client->LiveObjects().value(), 3U);
  other = Errc::name_unknown;  // the client ends
  EXPECT_TRUE(eventually([&] { return client->LiveObjects().value() == 1; }));
  EXPECT_EQ(client->Shut(*counter).value(), 42);
  EXPECT_EQ(client->LiveObjects().value(), 0U);
}

TEST_F(TwoHosts, run_the_handles_of_a_killed_client_down) {
  auto client = import();
  ASSERT_TRUE(client);
  testing_lrpc::Process other({NETPATH_TEST_CLIENT, here_->socket(), "files@10.0.0.2"});
  EXPECT_EQ(client->LiveObjects().value(), 2U);
  other.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return client->LiveObjects().value() == 0; }));
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 1; }));
}

TEST_F(TwoHosts, abort_a_call_when_its_deadline_has_passed) {
  auto options = import_options();
  options.call_timeout = milliseconds(50);
  auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  // If this process, with both hosts, is not scheduled for a while, a short call may expire, and a long one may not.
  const auto calls = [&] { return client->Null().has_value(); };
  EXPECT_TRUE(eventually(calls));
  EXPECT_TRUE(eventually([&] { return client->SleepFor(300).code() == Errc::call_aborted; }));
  EXPECT_TRUE(eventually(calls));
  EXPECT_FALSE(client->binding().revoked());
}

TEST_F(TwoHosts, abort_a_call_on_time_when_nothing_comes_back) {
  auto options = import_options();
  options.call_timeout = milliseconds(50);
  auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  // Shared, because held commands may outlive this test.
  const auto released = std::make_shared<std::atomic<bool>>(false);
  network_.tamper([released](std::uint16_t command, std::vector<std::byte>&) {
    while (command == 2 && !*released) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_EQ(client->Null().code(), Errc::call_aborted);
  EXPECT_TRUE(eventually([&] {
    auto started = client->start().Null();
    const bool over = started.wait_for(milliseconds(10));
    EXPECT_EQ(started.finish().code(), Errc::call_aborted);
    return !over;
  }));
  *released = true;
  EXPECT_TRUE(eventually([&] { return client->Null().has_value(); }));
}

TEST_F(TwoHosts, take_another_deadline_for_the_calls_from_now_on) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->SleepFor(100));
  lrpc::detail::StubAccess::object(client->binding()).set_call_timeout(milliseconds(50));
  EXPECT_TRUE(eventually([&] { return client->SleepFor(300).code() == Errc::call_aborted; }));
  lrpc::detail::StubAccess::object(client->binding()).set_call_timeout(lrpc::kNoLimit);
  EXPECT_TRUE(client->SleepFor(100));
}

TEST_F(TwoHosts, start_calls_and_finish_them_later) {
  auto client = import();
  ASSERT_TRUE(client);
  auto one = client->start().Add(1, 2);
  auto two = client->start().Greet("you");
  auto refused = client->start().Check(13);
  EXPECT_TRUE(eventually([&] {
    const auto sleeping = client->start().SleepFor(50);
    return !sleeping.ready();
  })) << "while it sleeps";
  auto sleeping = client->start().SleepFor(100);
  EXPECT_TRUE(sleeping.wait_for(kPatience));
  EXPECT_EQ(one.finish().value(), 3);
  EXPECT_EQ(two.finish().value().view(), "hello, you");
  EXPECT_NE(refused.finish().raised<Conformance::Refused>(), nullptr);
  EXPECT_TRUE(sleeping.finish());
  { const auto abandoned = client->start().SleepFor(50); }
  EXPECT_EQ(client->Add(1, 1).value(), 2);
}

TEST_F(TwoHosts, wait_for_started_calls_with_a_completion_queue) {
  auto client = import();
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(client && queue);
  int done = 0;
  auto one = client->start().SleepFor(30);
  auto two = client->start().Add(4, 5);
  ASSERT_TRUE((*queue)->watch(one, [&] { ++done; }));
  ASSERT_TRUE((*queue)->watch(two, [&] { ++done; }));
  EXPECT_TRUE(eventually([&] { return (void)(*queue)->wait(milliseconds(100)), done == 2; }));
  EXPECT_TRUE(one.finish());
  EXPECT_EQ(two.finish().value(), 9);
}

TEST_F(TwoHosts, serve_many_threads_at_once) {
  auto client = import();
  ASSERT_TRUE(client);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto sum = client->Add(t, i);
        if (!sum || *sum != t + i) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(TwoHosts, let_a_binding_have_more_calls_under_way_than_it_has_astacks) {
  auto options = import_options();
  options.supply = lrpc::AStackSupply::grow;
  options.grown_idle = milliseconds(20);
  auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  for (int round = 0; round < 3; ++round) {
    // There is one thread: if it waited for an A-stack, it would wait for ever.
    std::vector<decltype(client->start().Add(1, 1))> sums;
    for (int i = 0; i < 40; ++i) sums.push_back(client->start().Add(i, round));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + round);
    std::this_thread::sleep_for(milliseconds(100));  // the added A-stacks are released meanwhile
  }
  EXPECT_TRUE(client->Null());
}

}  // namespace
}  // namespace testing_netpath
