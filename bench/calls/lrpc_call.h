// The rows of lrpc: a nameserver, a server and a client, each a process of its own, and calls through generated stubs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/contender.h"
#include "core/placement.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::bench {

class LrpcDomains;

/// The four tests of the paper's Table IV, and BigIn with an `uninterpreted` argument, which saves one copy.
enum class LrpcTest { null, add, big_in, big_in_uninterpreted, big_in_out };
inline constexpr LrpcTest kLrpcTests[] = {LrpcTest::null, LrpcTest::add, LrpcTest::big_in,
                                          LrpcTest::big_in_uninterpreted, LrpcTest::big_in_out};
[[nodiscard]] std::string_view name(LrpcTest test) noexcept;

/// Keeps the error of the last call that failed.
class CallFailures {
 public:
  template <class Outcome>
  void note(const Outcome& outcome) noexcept {
    if (!outcome) [[unlikely]]
      last_ = outcome.code();
  }
  /// For Contender::health().
  [[nodiscard]] Status health() const {
    if (last_ == Errc::ok) return {};
    return Error{last_, "a call failed: " + std::string(describe(last_))};
  }

 private:
  Errc last_ = Errc::ok;
};

/// The gates that this build of the libraries offers between two domains.
[[nodiscard]] std::span<const shim::Gate> lrpc_gates() noexcept;

/// Starts a nameserver and a server. The client binds in Contender::connect().
Result<std::unique_ptr<Contender>> make_lrpc_call(const Seats& seats, shim::Gate gate, LrpcTest test);

/// The same for a server that already runs, and that other clients may call as well.
Result<std::unique_ptr<Contender>> make_lrpc_call(std::shared_ptr<LrpcDomains> domains, shim::Gate gate, LrpcTest test);

}  // namespace lrpc::bench
