// The Sun RPC client of lrpc-netd over fake calls, in one thread, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph_kinds.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/stubgen/layout/compile.h"
#include "netrpc/test/fake_calls.h"
#include "sun/sun_client.h"

namespace lrpc::netd::test {

using namespace std::chrono_literals;
using netpath::ForeignBinding;

inline constexpr uid_t kUser = 1000;
/// Buffer space of a fake call's request: one small buffer.
inline constexpr std::size_t kRequest = netrpc::BufferPool::kSizes[0];

/// Time passes only while a thread waits. The next function of `meanwhile` then runs outside the monitor, and the clock
/// advances until the thread's condition holds.
class OneThread final : public netrpc::Engine {
 public:
  explicit OneThread(netrpc::test::ManualClock& clock) : clock_(clock) {}
  bool wait(netrpc::Host& host, const std::function<bool()>& done, netrpc::Time deadline) override {
    if (!meanwhile.empty()) {
      const auto next = std::move(meanwhile.front());
      meanwhile.pop_front();
      outside(host, next);
    }
    while (!done() && host.now() < deadline) {
      clock_.advance(1ms);
      (void)host.events().run_due();
    }
    return done();
  }
  void wake(netrpc::Host& /*host*/) noexcept override {}
  std::deque<std::function<void()>> meanwhile;

 private:
  netrpc::test::ManualClock& clock_;
};

/// All clients' share of the buffers is four requests of the fake calls; the share of a user that is alone is two.
class SunClients : public ::testing::Test {
 protected:
  SunClients() {
    netrpc::HostOptions options;
    options.buffer_limit = 8 * 4 * kRequest;
    options.short_of_memory = [this] { return short_of_memory_; };
    host_.emplace(options, clock_, engine_);
    calls_.emplace(*host_);
    client_.emplace(*host_, SunClient::Below{&*calls_, nullptr},
                    std::vector<SunImport>{{"counter", "there", 0x20000001, 0, 7, netrpc::SunTransport::udp},
                                           {"anywhere", "there", 0x20000001, 0, 0, netrpc::SunTransport::udp}});
  }
  /// `name`: rpcbind knows the port of "anywhere".
  Result<std::unique_ptr<ForeignBinding>> bind(uid_t user, std::string name = "counter") {
    stubgen::Diagnostics diagnostics;
    const auto interface = stubgen::compile(
        {"t", "interface Counter version 1.0 { procedure Same(a: int32) -> (b: int32); }"}, diagnostics);
    netpath::ForeignServers::Wanted wanted{std::move(name), "there", 0x0a000009, user, interface->canonical};
    return client_->bind(wanted);
  }
  /// The fake calls echo the arguments. Errc::ok: they came back.
  static Errc call(ForeignBinding& binding) {
    const std::uint32_t sent = 42;
    std::uint32_t got = 0;
    const auto returned =
        binding.call(nullptr, 0, std::as_bytes(std::span(&sent, 1)), 0ms, std::as_writable_bytes(std::span(&got, 1)));
    const auto status = static_cast<std::uint16_t>(returned.status & ~shim::call_status::kTold);
    if (status == server::failed(Errc::limit_reached)) return Errc::limit_reached;
    return returned.status == 0 && returned.size == sizeof got && got == sent ? Errc::ok : Errc::call_failed;
  }

  netrpc::test::ManualClock clock_;
  OneThread engine_{clock_};
  bool short_of_memory_ = false;
  std::optional<netrpc::Host> host_;
  std::optional<netrpc::test::FakeCalls> calls_;
  std::optional<SunClient> client_;
};

}  // namespace lrpc::netd::test
