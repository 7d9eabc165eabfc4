// The implementation of the Conformance interface, for the test server and for tests that serve in their own process.
#pragma once

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "conformance.client.h"
#include "conformance.server.h"
#include "lrpc/server.h"

namespace testing_lrpc {

using lrpc::CallContext;

class ConformanceService {
 public:
  struct Counter {
    explicit Counter(std::int64_t start, std::atomic<std::uint32_t>& live) : value(start), alive(live) { ++alive; }
    ~Counter() { --alive; }
    std::atomic<std::int64_t> value;
    std::atomic<std::uint32_t>& alive;
  };
  struct Note {};

  /// `server`, if not null, provides the statistics; `nameserver` is where Through imports other servers.
  explicit ConformanceService(lrpc::Server* server = nullptr, std::string nameserver = {})
      : server_(server), nameserver_(std::move(nameserver)) {}

  void Null(CallContext&) {}
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  void BigIn(CallContext&, const std::array<std::byte, 200>&) {}
  void BigInOut(CallContext&, std::array<std::byte, 200>& data) { std::ranges::reverse(data); }

  Conformance::IntegersResults Integers(CallContext&, std::int8_t a, std::uint8_t b, std::int16_t c, std::uint16_t d,
                                        std::int32_t e, std::uint32_t f, std::int64_t g, std::uint64_t h) {
    return {a, b, c, d, e, f, g, h};
  }
  Conformance::FloatsResults Floats(CallContext&, float a, double b) { return {a, b}; }
  bool Flip(CallContext&, bool value) { return !value; }
  Conformance::Colour NextColour(CallContext&, Conformance::Colour colour) {
    using enum Conformance::Colour;
    return colour == Red ? Green : colour == Green ? Blue : Red;
  }
  Conformance::HalveResults Halve(CallContext&, Conformance::Percent share, Conformance::Signed offset) {
    return {.half = static_cast<Conformance::Percent>(share / 2), .negated = static_cast<Conformance::Signed>(-offset)};
  }
  std::int32_t Mirror(CallContext&, Conformance::Shape& shape) {
    // The smallest int32 has no negative: it stays the same.
    for (auto& corner : shape.corners)
      corner = {static_cast<std::int32_t>(0U - static_cast<std::uint32_t>(corner.x)), -corner.y};
    shape.filled = !shape.filled;
    return static_cast<std::int32_t>(shape.corners.size());
  }
  lrpc::String<300> Greet(CallContext&, const lrpc::String<255>& name) { return "hello, " + name.str(); }
  lrpc::String<4000> Concatenate(CallContext&, const lrpc::String<2000>& first, const lrpc::String<2000>& second) {
    return first.str() + second.str();
  }

  std::uint64_t Sum(CallContext&, std::span<const std::byte> data) {
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::byte b) { return sum + std::to_integer<std::uint64_t>(b); });
  }
  std::uint64_t SumInPlace(CallContext& call, std::span<const std::byte> data) { return Sum(call, data); }
  void Fill(CallContext&, std::uint32_t count, std::uint8_t value, lrpc::Buffer& data) {
    if (data.resize(count)) std::ranges::fill(data.contents(), std::byte{value});
  }
  void Reverse(CallContext&, lrpc::Buffer& data) { std::ranges::reverse(data.contents()); }
  void SmallBytes(CallContext&, std::span<const std::byte> data, lrpc::Buffer& copy) { (void)copy.assign(data); }

  Conformance::Counter Open(CallContext& call, std::int64_t start) {
    return call.grant<Conformance::Counter>(std::make_shared<Counter>(start, live_));
  }
  std::int64_t Advance(CallContext&, Counter& counter, std::int64_t by) { return counter.value += by; }
  std::int64_t Shut(CallContext&, const std::shared_ptr<Counter>& counter) { return counter->value; }
  Conformance::Note OpenNote(CallContext& call) { return call.grant<Conformance::Note>(std::make_shared<Note>()); }
  std::uint32_t LiveObjects(CallContext&) { return live_; }

  lrpc::Result<std::uint32_t, Conformance::TooBig, Conformance::Refused> Check(CallContext&, std::uint32_t value) {
    if (value > 100) return lrpc::raise(Conformance::TooBig{.limit = 100, .what = "value"});
    if (value == 13) return lrpc::raise(Conformance::Refused{.reason = "unlucky"});
    return value * 2;
  }
  void Throw(CallContext&) { throw std::runtime_error("thrown on request"); }
  void SleepFor(CallContext&, std::uint32_t milliseconds) {
    const timespec time{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
    nanosleep(&time, nullptr);
  }
  void NapFor(CallContext& call, std::uint32_t milliseconds) { SleepFor(call, milliseconds); }
  void Die(CallContext&) { _exit(3); }
  Conformance::Percent BadResult(CallContext&) { return 200; }
  Conformance::CallerResults Caller(CallContext& call) { return {.pid = call.caller().pid, .uid = call.caller().uid}; }
  std::int32_t ServerPid(CallContext&) { return getpid(); }
  std::uint64_t Count(CallContext&) { return ++executed_; }

  lrpc::Result<std::int32_t, Conformance::Refused> Through(CallContext&, const lrpc::String<255>& name, std::int32_t a,
                                                           std::int32_t b) {
    auto next = Conformance::Client::import(name.view(), {.nameserver = nameserver_});
    if (!next) return lrpc::raise(Conformance::Refused{.reason = next.error().message().substr(0, 128)});
    auto sum = next->Add(a, b);
    if (!sum) return sum.error();
    return *sum;
  }
  Conformance::StatisticsResults Statistics(CallContext&) {
    if (server_ == nullptr) return {};
    const auto now = server_->statistics();
    return {.bindings = now.bindings,
            .estacks = now.estacks,
            .poller_hits = now.poller_hits,
            .reclaimed = now.estacks_reclaimed,
            .granted_pollers = now.granted_pollers,
            .allocator_page = now.allocator_page};
  }

 private:
  lrpc::Server* server_;
  std::string nameserver_;
  std::atomic<std::uint32_t> live_{0};
  std::atomic<std::uint64_t> executed_{0};
};

/// Binds a private client in this process to `service`.
template <class Service>
lrpc::Result<Conformance::Client> bind_privately(lrpc::Server& server, Service& service,
                                                 const lrpc::ImportOptions& options = {},
                                                 const lrpc::ExportOptions& clerk = {}) {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) return ends.error();
  if (auto served = Conformance::serve_over(server, std::move(ends->first), service, clerk); !served)
    return served.error();
  return Conformance::Client::import_over(std::move(ends->second), options);
}

}  // namespace testing_lrpc
