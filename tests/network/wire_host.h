// A host on a real wire: a whole stack in a network namespace, with a user that answers calls and makes them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/test_support/namespaces.h"

namespace testing_wires {

using lrpc::Errc;
using lrpc::netrpc::HostAddress;
using lrpc::netrpc::test::Bridge;
using lrpc::netrpc::test::Namespace;

/// A stack. Calls are made over its instance `top`.
struct Stack {
  const char* name;   ///< A part of test names.
  const char* lower;  ///< From the devices up to `wire`, over which FAULT may be placed.
  const char* upper;  ///< From `spoiled` up: FAULT over `wire`, or `wire` itself.
};

extern const Stack kLayered;     ///< SELECT-CHANNEL-FRAGMENT-VIP.
extern const Stack kSizes;       ///< SELECT-CHANNEL-VIPsize.
extern const Stack kMonolithic;  ///< M_RPC-VIP.
std::string name_of(const ::testing::TestParamInfo<const Stack*>& stack);

/// How often each call was executed, by all lives of all servers together.
class Ledger {
 public:
  explicit Ledger(std::size_t calls) : executed_(calls) {}
  void record(std::uint64_t call) {
    if (call < executed_.size()) ++executed_[call];
  }
  [[nodiscard]] int executed(std::uint64_t call) const { return executed_[call]; }

 private:
  std::vector<std::atomic<int>> executed_;
};

/// The outcome of a call.
struct Answer {
  Errc outcome = Errc::ok;
  bool right = false;  ///< Whether the reply is from the host that was called and repeats the request.
};

/// The highest protocol: answers each request with its own address and the request itself.
class Echo final : public lrpc::netrpc::Protocol {
 public:
  Echo(lrpc::netrpc::Host& host, Ledger* ledger) : Protocol(host, "echo"), ledger_(ledger) {}
  void call_demux(lrpc::netrpc::Session& lower, lrpc::netrpc::Message request) noexcept override;
  /// The ports from which requests came. Call it under the monitor.
  [[nodiscard]] const std::set<std::uint16_t>& ports() const noexcept { return ports_; }

 private:
  Ledger* const ledger_;
  std::set<std::uint16_t> ports_;
};

struct WireHostOptions {
  const char* fault = "";       ///< FAULT's options: "loss = 0.1, on = push". Empty: no FAULT.
  const char* give_up = "25s";  ///< Longer than a loaded or paused machine needs to answer.
  Ledger* ledger = nullptr;     ///< Counts requests of 8 bytes or more, which begin with their number.
};

class WireHost {
 public:
  /// Serves at once. `where` must outlive it. Throws std::runtime_error.
  WireHost(const Namespace& where, HostAddress address, const Stack& stack, const WireHostOptions& options = {});
  WireHost(const WireHost&) = delete;
  WireHost& operator=(const WireHost&) = delete;
  ~WireHost();

  /// Makes a session to `server` if there is none. Thread-safe. Must be the first use of each server. `port`: the
  /// server's port, for stacks that need it.
  void open(HostAddress server, std::uint16_t port = 0);
  /// Calls `server`, which was opened, with `size` bytes, and waits for the reply. Thread-safe.
  Answer call(HostAddress server, std::size_t size, std::uint64_t number = 0);
  /// The statistics of an instance of the graph.
  [[nodiscard]] lrpc::netrpc::control::Statistics counted(std::string_view instance);
  /// From how many ports requests came to this host.
  [[nodiscard]] std::size_t calling_ports();
  [[nodiscard]] lrpc::netrpc::BufferPool& pool() { return host_->pool(); }
  /// Ends the graph and its sessions. The host with its pool remains.
  void end();

 private:
  struct Open {
    HostAddress server;
    lrpc::netrpc::SessionRef session;
  };
  Answer call_inside(HostAddress server, std::size_t size, std::uint64_t number);

  const Namespace& where_;
  lrpc::netrpc::MonotonicClock clock_;
  std::unique_ptr<lrpc::netrpc::UringEngine> engine_;
  std::unique_ptr<lrpc::netrpc::Host> host_;
  std::unique_ptr<Echo> echo_;
  std::optional<lrpc::netrpc::Graph> graph_;
  std::vector<Open> open_;
};

constexpr HostAddress address(int network, int host) {
  return HostAddress{0x0a000000U + static_cast<std::uint32_t>(network) * 256 + static_cast<std::uint32_t>(host)};
}
/// The addresses in most tests.
constexpr HostAddress kClient = address(0, 1);
constexpr HostAddress kServer = address(0, 2);
constexpr HostAddress kOther = address(0, 3);
/// "10.0.1.2/24"
std::string text(HostAddress address);

/// How many packets these hosts have sent or received over IP.
std::uint64_t over_ip(std::initializer_list<WireHost*> hosts);
/// Calls `server`, which `client` has opened, until a call needs no packet of theirs over IP. Calls do not wait for
/// ARP: packets may go over IP until ARP has answered, and none does afterwards.
void call_until_over_ethernet(WireHost& client, HostAddress server, std::initializer_list<WireHost*> hosts);

/// Sizes of requests: null calls, one packet, many.
inline constexpr std::size_t kSizesOfCalls[] = {0, 1000, 16'000};

/// Skips if the kernel or the user's privileges do not allow such networks.
class OnWires : public ::testing::TestWithParam<const Stack*> {
 protected:
  void SetUp() override {
    if (const auto why = lrpc::netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    if (const auto why = lrpc::netrpc::test::why_no_bridges()) GTEST_SKIP() << *why;
  }
  static const Stack& stack() { return *GetParam(); }
};

}  // namespace testing_wires
