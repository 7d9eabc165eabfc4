// The protocols of binding and of calling without the library: for a peer that need not follow them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/region.h"

namespace testing_lrpc {

/// A Conformance client's correct import request.
lrpc::shim::BinderMessage import_request(std::string name, lrpc::shim::Gate gate = lrpc::shim::Gate::adaptive);
/// A Conformance server's correct answer; see private_answer.h.
lrpc::shim::BinderMessage conformance_answer(std::uint32_t request = 1);
lrpc::shim::RegionLayout conformance_layout();
lrpc::UniqueFd duplicate(int fd);

/// A client's binding without the client library: the region and the bell. Throws std::runtime_error if binding fails.
class RawBinding {
 public:
  /// Binds by name.
  RawBinding(const std::string& nameserver, std::string name, lrpc::shim::Gate gate);
  /// Binds over the socket of a private server, and leaves the socket open.
  RawBinding(int socket, lrpc::shim::Gate gate);

  [[nodiscard]] const lrpc::shim::Region& region() const noexcept { return region_; }
  [[nodiscard]] int bell() const noexcept { return bell_.get(); }
  /// Hangs up even while others use the bell. The region stays mapped.
  void hang_up() noexcept;

  /// Rings `procedure` on an A-stack whose image is filled in, wakes its E-stack or the clerk, and waits for the
  /// return. nullopt: none came within `patience`.
  std::optional<std::uint16_t> call(std::uint32_t astack, std::uint16_t procedure,
                                    std::chrono::milliseconds patience = std::chrono::minutes(4));
  /// The first half of call(): rings and wakes.
  void ring(std::uint32_t astack, std::uint16_t procedure);
  /// Only rings, for a poller. If there is no poller, wake() gets the call served.
  void ring_only(std::uint32_t astack, std::uint16_t procedure);
  void wake(std::uint32_t astack);
  /// The status of the last call, if it has returned.
  [[nodiscard]] std::optional<std::uint16_t> returned(std::uint32_t astack) const;

 private:
  void bind(int socket, std::string name, lrpc::shim::Gate gate);

  lrpc::shim::Region region_;
  lrpc::UniqueFd bell_;
  std::vector<std::uint64_t> generations_;
};

}  // namespace testing_lrpc
