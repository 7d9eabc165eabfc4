// Tests the fuzzer of entry stubs: it reaches procedures that need handles, and it finds faults in stubs.
#include "lrpc/entry_fuzzer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance.server.h"
#include "fuzzed_conformance.h"

namespace testing_lrpc {
namespace {

using lrpc::fuzz::EntryFuzzer;
using lrpc::fuzz::HandlePlace;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kWatched = true;
#elif defined(__has_feature)
constexpr bool kWatched = __has_feature(address_sanitizer);
#else
constexpr bool kWatched = false;
#endif

constexpr std::uint8_t kKnownHandles = 2;

std::uint8_t procedure(std::string_view name) {
  for (std::size_t i = 0; i < Conformance::kPdl.procedures.size(); ++i) {
    if (Conformance::kPdl.procedures[i].name == name) return static_cast<std::uint8_t>(i);
  }
  ADD_FAILURE() << "no procedure " << name;
  return 0;
}

/// An input of whole calls, with images that are all zero.
std::vector<std::byte> calls(const std::vector<std::pair<std::string_view, std::uint8_t>>& wanted) {
  std::vector<std::byte> input;
  for (const auto& [name, flags] : wanted) {
    const lrpc::ProcedureDescriptor& called = Conformance::kPdl.procedures[procedure(name)];
    input.push_back(std::byte{procedure(name)});
    input.push_back(std::byte{flags});
    input.resize(input.size() + called.image_size);
    if ((flags & kKnownHandles) != 0) input.push_back(std::byte{0});  // the first known handle
    if (Conformance::kPdl.classes[called.astack_class].tail_size != 0) input.resize(input.size() + 2);
  }
  return input;
}

TEST(EntryFuzzer, calls_procedures_with_handles_that_were_given_out) {
  // Open(start: int64) -> (counter), Shut(counter closes) -> (last).
  const std::array<HandlePlace, 2> handles = {HandlePlace{procedure("Open"), 8, 1, true},
                                              HandlePlace{procedure("Shut"), 0, 1, false}};
  FuzzedConformance service;
  EntryFuzzer fuzzer(Conformance::kPdl, Conformance::Entry_<FuzzedConformance>::kStubs_, &service, handles);
  fuzzer.run(calls({{"Open", 0}, {"Shut", kKnownHandles}}));
  EXPECT_EQ(fuzzer.returned(), 2U);
  fuzzer.run(calls({{"Shut", kKnownHandles}, {"Shut", 0}}));
  EXPECT_EQ(fuzzer.returned(), 2U) << "a handle that was closed is none";
}

TEST(EntryFuzzer, runs_down_the_handles_of_a_binding_that_it_is_done_with) {
  const std::array<HandlePlace, 1> handles = {HandlePlace{procedure("Open"), 8, 1, true}};
  FuzzedConformance service;
  {
    EntryFuzzer fuzzer(Conformance::kPdl, Conformance::Entry_<FuzzedConformance>::kStubs_, &service, handles);
    fuzzer.run(calls({{"Open", 0}, {"Open", 0}}));
    lrpc::CallContext unused;
    EXPECT_EQ(service.LiveObjects(unused), 2U);
  }
  lrpc::CallContext unused;
  EXPECT_EQ(service.LiveObjects(unused), 0U);
}

/// Runs one call of Fill, whose stub is `stub`.
void run_with(lrpc::EntryStub stub) {
  auto stubs = Conformance::Entry_<FuzzedConformance>::kStubs_;
  stubs[procedure("Fill")] = stub;
  FuzzedConformance service;
  EntryFuzzer fuzzer(Conformance::kPdl, stubs, &service, {});
  fuzzer.run(calls({{"Fill", 0}}));
}

TEST(EntryFuzzerDeathTest, ends_for_an_error_that_the_procedure_does_not_declare) {
  EXPECT_DEATH(run_with([](void*, lrpc::CallContext&) -> std::uint16_t { return 1; }), "Fill: raised an error");
}

TEST(EntryFuzzerDeathTest, ends_for_a_failure_that_has_no_name) {
  EXPECT_DEATH(run_with([](void*, lrpc::CallContext&) -> std::uint16_t { return 0xfff0; }), "Fill: a failure");
}

TEST(EntryFuzzerDeathTest, ends_for_a_result_of_bytes_that_breaks_its_bound) {
  static constexpr auto kTooLong = [](void*, lrpc::CallContext& context) -> std::uint16_t {
    const lrpc::ProcedureDescriptor& called = Conformance::kPdl.procedures[procedure("SmallBytes")];
    for (const lrpc::VariableParameter& variable : called.variable_parameters) {
      const std::uint32_t length = variable.bound + 1;
      std::memcpy(lrpc::detail::StubAccess::image(context) + variable.length_offset, &length, sizeof length);
    }
    return 0;
  };
  const auto run = [] {
    auto stubs = Conformance::Entry_<FuzzedConformance>::kStubs_;
    stubs[procedure("SmallBytes")] = kTooLong;
    FuzzedConformance service;
    EntryFuzzer fuzzer(Conformance::kPdl, stubs, &service, {});
    fuzzer.run(calls({{"SmallBytes", 0}}));
  };
  EXPECT_DEATH(run(), "SmallBytes: returned results that break their own bounds");
}

TEST(EntryFuzzerDeathTest, ends_for_one_step_behind_the_image_where_a_sanitizer_watches) {
  if (!kWatched) GTEST_SKIP() << "not built with AddressSanitizer";
  EXPECT_DEATH(run_with([](void*, lrpc::CallContext& context) -> std::uint16_t {
                 const std::uint32_t end = Conformance::kPdl.procedures[procedure("Fill")].image_size;
                 lrpc::fuzz::look_at_bytes(std::span(lrpc::detail::StubAccess::image(context) + end, 1));
                 return 0;
               }),
               "AddressSanitizer");
}

TEST(EntryFuzzer, takes_an_exception_for_a_failed_call) {
  run_with([](void*, lrpc::CallContext&) -> std::uint16_t { throw 1; });
}

}  // namespace
}  // namespace testing_lrpc
