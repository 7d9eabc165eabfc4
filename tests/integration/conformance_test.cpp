// One conformance suite, run over every gate: every kind of parameter arrives and returns unchanged.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "gates.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;

class EveryGate : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    server_ = start_private_server();
    auto imported = Conformance::Client::import_over(std::move(server_.socket), {.gate = GetParam()});
    ASSERT_TRUE(imported) << imported.error().message();
    client_ = std::make_unique<Conformance::Client>(*std::move(imported));
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(client_->Null());  // lets the gate settle
  }
  PrivateServer server_;
  std::unique_ptr<Conformance::Client> client_;
};

TEST_P(EveryGate, carries_scalars_of_every_type_at_their_limits) {
  const auto low = client_->Integers(INT8_MIN, 0, INT16_MIN, 0, INT32_MIN, 0, INT64_MIN, 0);
  ASSERT_TRUE(low);
  EXPECT_EQ(*low, (Conformance::IntegersResults{INT8_MIN, 0, INT16_MIN, 0, INT32_MIN, 0, INT64_MIN, 0}));
  const auto high =
      client_->Integers(INT8_MAX, UINT8_MAX, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX);
  ASSERT_TRUE(high);
  EXPECT_EQ(*high, (Conformance::IntegersResults{INT8_MAX, UINT8_MAX, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX,
                                                 INT64_MAX, UINT64_MAX}));
  const auto floats = client_->Floats(-1.5F, std::numeric_limits<double>::infinity());
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->a2, -1.5F);
  EXPECT_TRUE(std::isinf(floats->b2));
  EXPECT_EQ(client_->Flip(true).value(), false);
  EXPECT_EQ(client_->Flip(false).value(), true);
  EXPECT_EQ(client_->NextColour(Conformance::Colour::Blue).value(), Conformance::Colour::Red);
  const auto halved = client_->Halve(100, -10);
  ASSERT_TRUE(halved);
  EXPECT_EQ(halved->half, 50);
  EXPECT_EQ(halved->negated, 10);
}

TEST_P(EveryGate, adds_many_times_without_mixing_results_up) {
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(client_->Add(i, 3 * i).value(), 4 * i);
}

TEST_P(EveryGate, carries_fixed_arrays_both_ways) {
  std::array<std::byte, 200> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  const auto original = data;
  ASSERT_TRUE(client_->BigIn(data));
  ASSERT_TRUE(client_->BigInOut(data));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), original.rbegin()));
}

TEST_P(EveryGate, carries_records_with_every_kind_of_field) {
  Conformance::Shape shape{.name = "triangle",
                           .colour = Conformance::Colour::Green,
                           .corners = {{{1, 0.5}, {2, -0.25}, {3, 1e300}}},
                           .filled = true,
                           .share = 99};
  ASSERT_EQ(client_->Mirror(shape).value(), 3);
  EXPECT_EQ(shape.name, "triangle");
  EXPECT_EQ(shape.corners[2], (Conformance::Point{-3, -1e300}));
  EXPECT_FALSE(shape.filled);
  EXPECT_EQ(shape.share, 99);
}

TEST_P(EveryGate, carries_strings_up_to_their_bounds_inline_and_in_the_tail) {
  EXPECT_EQ(client_->Greet("").value(), "hello, ");
  EXPECT_EQ(client_->Greet(std::string(255, 'x')).value().size(), 262U);
  const std::string with_nul("a\0b", 3);
  EXPECT_EQ(client_->Greet(with_nul).value().view(), std::string("hello, ") + with_nul);
  const std::string first(2000, 'a');
  const std::string second(2000, 'b');
  EXPECT_EQ(client_->Concatenate(first, second).value().view(), first + second);
  EXPECT_EQ(client_->Concatenate("a", "b").value(), "ab");
}

TEST_P(EveryGate, refuses_an_argument_over_its_bound_before_anything_is_rung) {
  EXPECT_EQ(client_->Greet(std::string(256, 'x')).code(), Errc::argument_too_long);
  EXPECT_EQ(client_->Halve(101, 0).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client_->Halve(0, 11).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client_->NextColour(static_cast<Conformance::Colour>(3)).code(), Errc::argument_out_of_range);
  EXPECT_TRUE(client_->Null());
}

TEST_P(EveryGate, names_the_procedure_and_the_argument_that_it_refuses) {
  EXPECT_EQ(client_->Greet(std::string(256, 'x')).error().message(),
            "argument too long: Conformance.Greet: 'name' is longer than 255 bytes");
  EXPECT_EQ(client_->start().Greet(std::string(256, 'x')).finish().error().message(),
            "argument too long: Conformance.Greet: 'name' is longer than 255 bytes");
  EXPECT_EQ(client_->Halve(0, 11).error().message(),
            "argument out of range: Conformance.Halve: 'offset' is not in -10 .. 10");
  const auto no_colour = static_cast<Conformance::Colour>(3);
  auto started = client_->start().NextColour(no_colour);
  auto moved = std::move(started);
  EXPECT_EQ(moved.finish().error().message(),
            "argument out of range: Conformance.NextColour: 'colour' is no value of Colour");
  EXPECT_EQ(started.finish().code(), Errc::invalid_argument) << "it was moved from";  // NOLINT(bugprone-use-after-move)
}

TEST_P(EveryGate, names_the_procedure_for_which_the_server_refuses_a_handle_or_catches_an_exception) {
  EXPECT_EQ(client_->Advance(Conformance::Counter{12345}, 1).error().message(),
            "handle is not open in this binding, or of another type: Conformance.Advance");
  EXPECT_EQ(client_->start().Throw().finish().error().message(),
            "call failed: an exception escaped the procedure: Conformance.Throw");
  EXPECT_EQ(client_->BadResult().error().message(),
            "call failed: a result does not conform to its type: Conformance.BadResult");
}

TEST_P(EveryGate, carries_bytes_of_every_size_class) {
  for (const std::size_t size : {0UL, 1UL, 64UL, 1400UL, 1500UL, 5000UL, 65'536UL, 4'194'304UL}) {
    std::vector<std::byte> data(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7);
    const auto expected =
        std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                        [](std::uint64_t sum, std::byte b) { return sum + std::to_integer<std::uint64_t>(b); });
    EXPECT_EQ(client_->Sum(data).value(), expected) << size;
    EXPECT_EQ(client_->SumInPlace(data).value(), expected) << size;
    std::vector<std::byte> room(size);
    lrpc::Buffer filled{std::span(room)};
    ASSERT_TRUE(client_->Fill(static_cast<std::uint32_t>(size), 0xab, filled)) << size;
    EXPECT_EQ(filled.size(), size);
    EXPECT_TRUE(std::ranges::all_of(filled.contents(), [](std::byte b) { return b == std::byte{0xab}; }));
  }
  std::vector<std::byte> too_long(4'194'305);
  EXPECT_EQ(client_->Sum(too_long).code(), Errc::argument_too_long);
}

TEST_P(EveryGate, reverses_an_inout_buffer_of_any_size) {
  for (const std::size_t size : {0UL, 10UL, 1400UL, 100'000UL}) {
    std::vector<std::byte> data(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i);
    const auto original = data;
    lrpc::Buffer buffer(std::span<std::byte>(data), size);
    ASSERT_TRUE(client_->Reverse(buffer)) << size;
    ASSERT_EQ(buffer.size(), size);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), original.rbegin())) << size;
  }
}

TEST_P(EveryGate, says_result_too_long_when_the_callers_buffer_is_too_small) {
  std::array<std::byte, 10> room{};
  lrpc::Buffer small{std::span(room)};
  const auto refused = client_->Fill(11, 1, small);
  EXPECT_EQ(refused.code(), Errc::result_too_long);
  EXPECT_EQ(refused.error().message(), "result too long: Conformance.Fill: 'data' does not fit the caller's buffer");
  ASSERT_TRUE(client_->Fill(10, 1, small));
  EXPECT_EQ(small.size(), 10U);
}

TEST_P(EveryGate, keeps_handles_typed_and_closed_ones_dead) {
  const auto counter = client_->Open(40);
  ASSERT_TRUE(counter);
  EXPECT_EQ(client_->Advance(*counter, 2).value(), 42);
  const auto note = client_->OpenNote();
  ASSERT_TRUE(note);
  EXPECT_EQ(client_->Advance(Conformance::Counter{note->value}, 1).code(), Errc::bad_handle);
  EXPECT_EQ(client_->Advance(Conformance::Counter{counter->value + 1}, 1).code(), Errc::bad_handle);
  EXPECT_EQ(client_->Advance(Conformance::Counter{}, 1).code(), Errc::bad_handle);
  EXPECT_EQ(client_->LiveObjects().value(), 1U);
  EXPECT_EQ(client_->Shut(*counter).value(), 42);
  EXPECT_EQ(client_->Advance(*counter, 1).code(), Errc::bad_handle);
  EXPECT_EQ(client_->LiveObjects().value(), 0U);
}

TEST_P(EveryGate, raises_each_declared_error_with_its_contents) {
  EXPECT_EQ(client_->Check(50).value(), 100U);
  const auto big = client_->Check(101);
  EXPECT_EQ(big.code(), Errc::raised);
  ASSERT_NE(big.raised<Conformance::TooBig>(), nullptr);
  EXPECT_EQ(big.raised<Conformance::TooBig>()->limit, 100U);
  EXPECT_EQ(big.raised<Conformance::TooBig>()->what, "value");
  EXPECT_EQ(big.raised<Conformance::Refused>(), nullptr);
  const auto refused = client_->Check(13);
  ASSERT_NE(refused.raised<Conformance::Refused>(), nullptr);
  EXPECT_EQ(refused.raised<Conformance::Refused>()->reason, "unlucky");
}

TEST_P(EveryGate, makes_an_escaped_exception_call_failed_and_the_server_lives) {
  EXPECT_EQ(client_->Throw().code(), Errc::exception_escaped);
  EXPECT_TRUE(client_->Null());
}

TEST_P(EveryGate, makes_a_result_that_breaks_its_type_the_servers_fault) {
  EXPECT_EQ(client_->BadResult().code(), Errc::bad_result);
  EXPECT_TRUE(client_->Null());
}

TEST_P(EveryGate, waits_for_procedures_of_any_length) {
  for (const unsigned ms : {0U, 1U, 30U, 130U}) {
    EXPECT_TRUE(client_->SleepFor(ms));
    EXPECT_TRUE(client_->NapFor(ms));
  }
}

TEST_P(EveryGate, executes_every_call_exactly_once) {
  for (std::uint64_t i = 1; i <= 20'000; ++i) ASSERT_EQ(client_->Count().value(), i);
}

TEST_P(EveryGate, tells_the_procedure_who_calls) {
  const auto caller = client_->Caller();
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->pid, getpid());
  EXPECT_EQ(caller->uid, getuid());
  EXPECT_EQ(client_->ServerPid().value(), client_->binding().server().pid);
}

TEST_P(EveryGate, serves_more_threads_than_astacks) {
  constexpr int kThreads = 12;
  constexpr int kCalls = 500;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const auto sum = client_->Add(t, i);
        if (!sum || *sum != t + i) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(conformance, EveryGate, testing::ValuesIn(kRepeatedGates), gate_name);

}  // namespace
}  // namespace testing_lrpc
