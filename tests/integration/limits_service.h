// The implementation of Limits, and a binding to it within one process, so that a race detector sees both sides.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "eventually.h"
#include "limits.client.h"
#include "limits.server.h"
#include "lrpc/client.h"
#include "lrpc/server.h"

namespace testing_lrpc {

class LimitsService {
 public:
  using CallContext = lrpc::CallContext;
  static constexpr std::uint32_t kNumbers = 200'000;

  void Null(CallContext&) {}
  std::uint32_t Once(CallContext&, std::uint32_t number) {
    ++times[number % kNumbers];
    return number;
  }
  void Throw(CallContext&) { throw std::runtime_error("on request"); }
  Limits::LeftResults Left(CallContext& call) {
    ++asked;
    const auto left = call.remaining();
    std::this_thread::sleep_for(std::chrono::microseconds(10));
    const auto later = call.remaining();
    last_left = left ? left->count() : -1;
    return {.limited = left.has_value(), .nanoseconds = left ? left->count() : 0, .later = later ? later->count() : 0};
  }
  bool Hold(CallContext& call, std::uint32_t milliseconds) {
    ++holding;
    const bool abandoned = wait_for(std::chrono::milliseconds(milliseconds), [&] { return call.abandoned(); });
    if (abandoned) ++abandonments;
    --holding;
    return abandoned;
  }
  bool HoldAnywhere(CallContext& call, std::uint32_t milliseconds) { return Hold(call, milliseconds); }
  void Stay(CallContext&) {
    ++holding;
    (void)wait_for(kPatience, [&] { return released.load(); });
    --holding;
  }
  lrpc::Result<Limits::LeftBehindResults> LeftBehind(CallContext&, bool fresh) {
    std::optional<lrpc::CallScope> scope;
    if (fresh) scope.emplace(lrpc::fresh);
    const auto left = behind.load()->Left();
    if (!left) return left.error();
    return Limits::LeftBehindResults{.limited = left->limited, .nanoseconds = left->nanoseconds};
  }
  lrpc::Result<void> HoldBehind(CallContext&, std::uint32_t milliseconds) {
    ++holding_behind;
    const auto held = behind.load()->Hold(milliseconds);
    behind_ended = static_cast<int>(held.code());
    --holding_behind;
    if (!held) return held.error();
    return {};
  }
  void Note(CallContext& call, std::uint32_t milliseconds) {
    const auto left = call.remaining();
    last_left = left ? left->count() : -1;
    (void)Hold(call, milliseconds);
    ++noted;
  }

  /// Whether `so` became true in time.
  static bool wait_for(std::chrono::milliseconds most, const std::function<bool()>& so) {
    const auto until = std::chrono::steady_clock::now() + most;
    while (!so()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  std::atomic<Limits::Client*> behind{nullptr};
  std::array<std::atomic<std::uint8_t>, kNumbers> times{};
  std::atomic<std::uint32_t> asked{0};
  std::atomic<std::uint32_t> holding{0};
  std::atomic<std::uint32_t> abandonments{0};
  std::atomic<std::uint32_t> noted{0};
  std::atomic<std::int64_t> last_left{-2};  ///< -1: no deadline.
  std::atomic<std::uint32_t> holding_behind{0};
  std::atomic<int> behind_ended{-1};
  std::atomic<bool> released{false};
};

struct LocalLimits {
  LimitsService service;
  lrpc::Server server;
  std::unique_ptr<Limits::Client> client;

  explicit LocalLimits(const lrpc::ImportOptions& options = {}) {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) throw std::runtime_error(ends.error().message());
    if (auto served = Limits::serve_over(server, std::move(ends->first), service); !served)
      throw std::runtime_error(served.error().message());
    auto imported = Limits::Client::import_over(std::move(ends->second), options);
    if (!imported) throw std::runtime_error(imported.error().message());
    client = std::make_unique<Limits::Client>(*std::move(imported));
  }
  ~LocalLimits() { service.released = true; }
  [[nodiscard]] std::size_t in_quarantine() const {
    return lrpc::detail::StubAccess::object(client->binding()).in_quarantine();
  }
  /// Repeats a call that ends early until its procedure has begun: a call may also end before that.
  template <class Call, class Begun>
  void until_it_begins(const Call& call, const Begun& begun) const {
    for (bool has = false; !has && !testing::Test::HasFatalFailure();) {
      call();
      ASSERT_TRUE(eventually([&] { return (has = begun()) || in_quarantine() == 0; }));
    }
  }
};

}  // namespace testing_lrpc
