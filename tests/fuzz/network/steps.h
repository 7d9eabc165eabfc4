// A host whose time passes in the fuzzer's steps, and in which nothing waits.
#pragma once

#include <cstdint>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::fuzz {

class StepClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  void pass(Duration time) noexcept { now_ += time; }

 private:
  Time now_{1'000'000'000};
};

class NoEngine final : public Engine {
 public:
  bool wait(Host& /*host*/, const std::function<bool()>& done, Time /*deadline*/) override { return done(); }
  void wake(Host& /*host*/) noexcept override {}
};

[[nodiscard]] inline HostOptions host_options(HostAddress address) {
  HostOptions options;
  options.address = address;
  options.boot_id = 0x1234;
  options.seed = 1;
  options.buffer_limit = std::size_t{8} << 20;
  return options;
}

}  // namespace lrpc::netrpc::fuzz
