// The Conformance service under attack. Whatever the client does to the region, a procedure that runs must have got
// arguments that conform to the interface, and private copies of those that the server copies.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "conformance_service.h"
#include "input.h"

namespace lrpc::fuzz {

/// Without the procedures that do harm if called correctly, and without procedures that only take time.
class WatchfulService : public testing_lrpc::ConformanceService {
 public:
  Conformance::Colour NextColour(CallContext& call, Conformance::Colour colour) {
    require(Conformance::layout::is_Colour(colour), "an enum's argument is one of its values");
    return ConformanceService::NextColour(call, colour);
  }
  Conformance::HalveResults Halve(CallContext& call, Conformance::Percent share, Conformance::Signed offset) {
    require(Conformance::layout::is_Percent(share) && Conformance::layout::is_Signed(offset),
            "arguments are in their ranges");
    return ConformanceService::Halve(call, share, offset);
  }
  std::int32_t Mirror(CallContext& call, Conformance::Shape& shape) {
    require(Conformance::layout::is_Shape(shape) && shape.name.size() <= 32, "a record conforms");
    return ConformanceService::Mirror(call, shape);
  }
  lrpc::String<300> Greet(CallContext& call, const lrpc::String<255>& name) {
    require(name.size() <= 255, "a text keeps to its bound");
    return ConformanceService::Greet(call, name);
  }
  lrpc::String<4000> Concatenate(CallContext& call, const lrpc::String<2000>& first, const lrpc::String<2000>& second) {
    require(first.size() <= 2000 && second.size() <= 2000, "texts keep to their bounds");
    return ConformanceService::Concatenate(call, first, second);
  }
  std::uint64_t Sum(CallContext& call, std::span<const std::byte> data) {
    require(data.size() <= Conformance::layout::kSum_data.bound, "bytes keep to their bound");
    expect_copied(call, data, Conformance::layout::kSum_data.bound);
    return ConformanceService::Sum(call, data);
  }
  std::uint64_t SumInPlace(CallContext& call, std::span<const std::byte> data) {
    require(data.size() <= Conformance::layout::kSumInPlace_data.bound, "bytes in place keep to their bound");
    return ConformanceService::Sum(call, data.first(std::min<std::size_t>(data.size(), 4096)));
  }
  void Fill(CallContext& call, std::uint32_t count, std::uint8_t value, lrpc::Buffer& data) {
    require(data.capacity() <= Conformance::layout::kFill_data.bound, "there is room for so much and no more");
    ConformanceService::Fill(call, count, value, data);
  }
  void Reverse(CallContext& call, lrpc::Buffer& data) {
    require(data.size() <= data.capacity() && data.capacity() <= Conformance::layout::kReverse_data.bound,
            "bytes that are changed keep to their bound");
    expect_copied(call, data.contents(), Conformance::layout::kReverse_data.bound);
    ConformanceService::Reverse(call, data);
  }
  void SmallBytes(CallContext& call, std::span<const std::byte> data, lrpc::Buffer& copy) {
    require(data.size() <= Conformance::layout::kSmallBytes_data.bound, "a few bytes keep to their bound");
    ConformanceService::SmallBytes(call, data, copy);
  }
  void Die(CallContext&) {}
  void SleepFor(CallContext&, std::uint32_t milliseconds) { nap(milliseconds); }
  void NapFor(CallContext&, std::uint32_t milliseconds) { nap(milliseconds); }
  lrpc::Result<std::int32_t, Conformance::Refused> Through(CallContext&, const lrpc::String<255>& name, std::int32_t,
                                                           std::int32_t) {
    require(name.size() <= 255, "a text keeps to its bound");
    return lrpc::raise(Conformance::Refused{.reason = name.view().substr(0, 128)});
  }

 private:
  /// `bound`: the longest tail that the parameter needs.
  static void expect_copied(CallContext& call, std::span<const std::byte> data, std::size_t bound) {
    const auto in = [&](const std::byte* shared, std::size_t size) {
      return shared != nullptr && !data.empty() && data.data() >= shared && data.data() < shared + size;
    };
    require(!in(lrpc::detail::StubAccess::image(call), 64) && !in(lrpc::detail::StubAccess::tail(call), bound),
            "bytes are copied before they are used");
  }
  static void nap(std::uint32_t milliseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(milliseconds % 200));
  }
};

}  // namespace lrpc::fuzz
